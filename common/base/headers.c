#include "headers.h"

#include <string.h>

void headers_init(struct headers *h)
{
    h->n = 0;
    h->text_len = 0;
}

bool headers_put_str(struct headers *h, struct str name, struct str value)
{
    if (!value.ptr)
        return true;
    if (h->n == HEADERS_MAX)
        return false;
    h->at[h->n++] = (struct header){ name, value };
    return true;
}

bool headers_put(struct headers *h, const char *name, struct str value)
{
    return headers_put_str(h, str_of(name), value);
}

static struct header *header_find(struct headers *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->at[i].name, str_of(name)))
            return &h->at[i];
    return NULL;
}

static bool is_own_text(const struct headers *h, struct str value)
{
    return value.ptr >= h->text && value.ptr < h->text + sizeof(h->text);
}

bool headers_put_i64(struct headers *h, const char *name, int64_t value)
{
    char digits[STR_NUMBER_SIZE];
    return headers_put_copy(h, name, str_number(digits, value));
}

bool headers_put_copy(struct headers *h, const char *name, struct str value)
{
    if (!value.ptr)
        return true;
    if (h->n == HEADERS_MAX || value.len > sizeof(h->text) - h->text_len)
        return false;
    char *to = h->text + h->text_len;
    memcpy(to, value.ptr, value.len);
    h->text_len += value.len;
    return headers_put(h, name, (struct str){ to, value.len });
}

bool headers_set(struct headers *h, const char *name, struct str value)
{
    struct header *old = header_find(h, name);
    if (!old)
        return headers_put(h, name, value);
    if (value.ptr)
        old->value = value;
    else
        headers_remove(h, name);
    return true;
}

bool headers_set_i64(struct headers *h, const char *name, int64_t value)
{
    char digits[STR_NUMBER_SIZE];
    struct str text = str_number(digits, value);
    struct header *old = header_find(h, name);
    if (!old)
        return headers_put_copy(h, name, text);
    char *to = h->text + h->text_len;
    if (is_own_text(h, old->value) && old->value.len >= text.len) /* over the old one */
        to = h->text + (old->value.ptr - h->text);
    else if (text.len <= sizeof(h->text) - h->text_len)
        h->text_len += text.len;
    else
        return false;
    memcpy(to, text.ptr, text.len);
    old->value = (struct str){ to, text.len };
    return true;
}

void headers_remove(struct headers *h, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!str_eq_nocase(h->at[i].name, str_of(name)))
            h->at[kept++] = h->at[i];
    h->n = kept;
}

void headers_leave_room(struct headers *h, size_t n)
{
    if (h->n > HEADERS_MAX - n)
        h->n = HEADERS_MAX - n;
}

size_t headers_bytes(const struct headers *h)
{
    size_t bytes = 0;
    for (size_t i = 0; i < h->n; i++)
        bytes += h->at[i].name.len + h->at[i].value.len;
    return bytes;
}

struct str headers_get(const struct headers *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->at[i].name, str_of(name)))
            return h->at[i].value;
    return STR_NONE;
}

int64_t headers_get_i64(const struct headers *h, const char *name, int64_t fallback)
{
    int64_t number;
    return str_to_i64(headers_get(h, name), &number) ? number : fallback;
}

void headers_copy(struct headers *to, const struct headers *from)
{
    to->n = from->n;
    to->text_len = from->text_len;
    memcpy(to->text, from->text, from->text_len);
    for (size_t i = 0; i < from->n; i++) {
        to->at[i] = from->at[i];
        struct str value = from->at[i].value;
        if (is_own_text(from, value))
            to->at[i].value.ptr = to->text + (value.ptr - from->text);
    }
}

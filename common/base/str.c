#include "str.h"

#include <string.h>
#include <strings.h>

#include "mem.h"

struct str str_of(const char *text)
{
    return text ? (struct str){ text, strlen(text) } : STR_NONE;
}

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Not tolower(): that one asks the locale. */
static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    return true;
}

bool str_is(struct str s, const char *text)
{
    return s.ptr && str_eq(s, str_of(text));
}

bool str_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && (n == 0 || memcmp(s.ptr, prefix, n) == 0);
}

bool str_ends(struct str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.len >= n && (n == 0 || memcmp(s.ptr + s.len - n, suffix, n) == 0);
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    if (order)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

struct str str_from(struct str s, size_t i)
{
    if (!s.ptr)
        return s;
    if (i > s.len)
        i = s.len;
    return (struct str){ s.ptr + i, s.len - i };
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len && is_blank(s.ptr[0]))
        s = str_from(s, 1);
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct str str_cut(struct str s, size_t max_bytes)
{
    if (s.len <= max_bytes)
        return s;
    s.len = max_bytes;
    while (s.len && ((unsigned char)s.ptr[s.len] & 0xc0) == 0x80) /* continues a character */
        s.len--;
    return s;
}

size_t str_control_at(struct str s, size_t i)
{
    const unsigned char *c = (const unsigned char *)s.ptr + i;
    if (c[0] < 0x20 || c[0] == 0x7f)
        return 1;
    return s.len - i >= 2 && c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

size_t str_turn_at(struct str s, size_t i)
{
    const unsigned char *c = (const unsigned char *)s.ptr + i;
    if (s.len - i >= 2 && c[0] == 0xd8 && c[1] == 0x9c)
        return 2;
    if (s.len - i < 3 || c[0] != 0xe2)
        return 0;
    bool turns =
        (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae))) ||
        (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
    return turns ? 3 : 0;
}

ptrdiff_t str_find(struct str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return at ? at - s.ptr : -1;
}

ptrdiff_t str_find_str(struct str s, struct str needle)
{
    if (needle.len == 0)
        return s.ptr ? 0 : -1;
    const char *at = s.len ? memmem(s.ptr, s.len, needle.ptr, needle.len) : NULL;
    return at ? at - s.ptr : -1;
}

/* A rest that was used up is absent (ptr NULL). A separator at the very end adds no empty part. */
bool str_split(struct str *rest, char separator, struct str *part)
{
    if (!rest->ptr)
        return false;
    ptrdiff_t at = str_find(*rest, separator);
    if (at < 0) {
        *part = *rest;
        *rest = STR_NONE;
        return part->len > 0;
    }
    *part = (struct str){ rest->ptr, (size_t)at };
    *rest = str_from(*rest, (size_t)at + 1);
    return true;
}

bool str_to_u64(struct str s, uint64_t *ret)
{
    uint64_t n = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *ret = n;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
    bool negative = s.len && s.ptr[0] == '-';
    uint64_t n;
    if (!str_to_u64(negative ? str_from(s, 1) : s, &n))
        return false;
    if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *ret = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

struct str str_number(char to[STR_NUMBER_SIZE], int64_t n)
{
    char digits[STR_NUMBER_SIZE], *end = digits + sizeof(digits), *at = end;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (n < 0)
        *--at = '-';
    struct str text = { to, (size_t)(end - at) };
    memcpy(to, at, text.len);
    to[text.len] = '\0';
    return text;
}

struct str str_seconds(char to[STR_NUMBER_SIZE], int64_t ms)
{
    size_t n = str_number(to, ms / 1000).len;
    str_number(to + n, 1000 + ms % 1000); /* the point replaces the 1 */
    to[n] = '.';
    return (struct str){ to, n + 4 };
}

char *str_dup(struct str s)
{
    if (!s.ptr)
        return NULL;
    char *copy = mem_alloc(s.len + 1, 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

bool str_copy(char *to, size_t size, struct str s)
{
    to[0] = '\0';
    if (s.len >= size)
        return false;
    if (s.len)
        memcpy(to, s.ptr, s.len);
    to[s.len] = '\0';
    return true;
}

bool str_lower(char *to, size_t size, struct str s)
{
    if (!str_copy(to, size, s))
        return false;
    for (; *to; to++)
        if (*to >= 'A' && *to <= 'Z')
            *to += 'a' - 'A';
    return true;
}

#include "form.h"

#include <ctype.h>
#include <stdlib.h>

bool form_is(struct str content_type)
{
    ptrdiff_t end = str_find(content_type, ';');
    if (end >= 0)
        content_type.len = (size_t)end;
    return str_eq_nocase(str_trim(content_type), STR_LIT("application/x-www-form-urlencoded"));
}

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* to has room for text.len bytes. */
static bool decode(struct str text, char *to, size_t *len)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '+')
            c = ' ';
        if (c == '%') {
            if (text.len - i < 3 || !isxdigit((unsigned char)text.ptr[i + 1]) ||
                !isxdigit((unsigned char)text.ptr[i + 2]))
                return false;
            c = (char)(hex_value(text.ptr[i + 1]) << 4 | hex_value(text.ptr[i + 2]));
            i += 2;
        }
        to[n++] = c;
    }
    *len = n;
    return true;
}

enum err form_payload(struct str body, char **ret, size_t *len, struct why *why)
{
    const char name[] = "payload=";
    struct str field, found = STR_NONE;
    while (str_split(&body, '&', &field)) {
        if (!str_starts(field, name))
            continue;
        if (found.ptr)
            return why_set(why, ERR_REFUSE, "the form has more than one payload");
        found = str_from(field, sizeof(name) - 1);
    }
    if (!found.ptr)
        return why_set(why, ERR_REFUSE, "the form has no payload");
    char *text = malloc(found.len + 1);
    if (!text)
        return why_set(why, ERR_RETRY, "no memory for the body");
    if (!decode(found, text, len)) {
        free(text);
        return why_set(why, ERR_REFUSE, "the form has a %% without two hex digits");
    }
    text[*len] = '\0';
    *ret = text;
    return OK;
}

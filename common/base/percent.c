#include "percent.h"

#include <ctype.h>

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

struct str percent_decode(struct str text, bool form, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '+' && form)
            c = ' ';
        if (c == '%') {
            if (text.len - i < 3 || !isxdigit((unsigned char)text.ptr[i + 1]) ||
                !isxdigit((unsigned char)text.ptr[i + 2]))
                return STR_NONE;
            c = (char)(hex_value(text.ptr[i + 1]) << 4 | hex_value(text.ptr[i + 2]));
            i += 2;
        }
        to[n++] = c;
    }
    return (struct str){ to, n };
}

#include "json_text.h"

size_t json_text_utf8(struct str s)
{
    static const struct {
        unsigned char first, last; /* of the leading byte */
        unsigned char low, high;   /* of the second byte */
        size_t len;
    } forms[] = {
        { 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    const unsigned char *p = (const unsigned char *)s.ptr;
    for (size_t i = 0; s.len && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (p[0] < forms[i].first || p[0] > forms[i].last)
            continue;
        if (forms[i].len == 1)
            return 1;
        if (s.len < forms[i].len || p[1] < forms[i].low || p[1] > forms[i].high)
            return 0;
        for (size_t k = 2; k < forms[i].len; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return forms[i].len;
    }
    return 0;
}

void json_text_put(struct buf *to, struct str s)
{
    static const char characters[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    if (!s.ptr) {
        buf_puts(to, "null");
        return;
    }
    buf_putc(to, '"');
    while (s.len) {
        size_t n = json_text_plain(s);
        buf_put(to, (struct str){ s.ptr, n });
        s = str_from(s, n);
        if (!s.len)
            break;
        const char *short_escape = memchr(characters, s.ptr[0], sizeof(characters) - 1);
        n = json_text_utf8(s);
        if (short_escape) {
            buf_putc(to, '\\');
            buf_putc(to, letters[short_escape - characters]);
        } else if (n == 0)
            buf_puts(to, "\xef\xbf\xbd");
        else if (n == 1)
            buf_printf(to, "\\u%04x", (unsigned)s.ptr[0]);
        else
            buf_put(to, (struct str){ s.ptr, n });
        s = str_from(s, n ? n : 1);
    }
    buf_putc(to, '"');
}

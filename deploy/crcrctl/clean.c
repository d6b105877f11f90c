#include "clean.h"

/* How many bytes of a control character begin there; 0: none does. */
static size_t control_at(struct str s, size_t i)
{
    unsigned char c = (unsigned char)s.ptr[i];

    if (c < 0x20 || c == 0x7f)
        return 1;
    if (c == 0xc2 && i + 1 < s.len && (unsigned char)s.ptr[i + 1] >= 0x80 &&
        (unsigned char)s.ptr[i + 1] < 0xa0)
        return 2;
    return 0;
}

void clean_line(struct buf *to, struct str text)
{
    for (size_t i = 0, n; i < text.len; i += n ? n : 1) {
        n = control_at(text, i);
        buf_putc(to, n ? ' ' : text.ptr[i]);
    }
}

void clean_text(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        size_t n = control_at(text, i);
        if (!n || text.ptr[i] == '\n' || text.ptr[i] == '\t') {
            buf_putc(to, text.ptr[i]);
            continue;
        }
        for (size_t end = i + n; i < end; i++)
            buf_printf(to, "\\x%02x", (unsigned char)text.ptr[i]);
        i--;
    }
}

#include "out.h"

#include <stdlib.h>

#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"

/* The character at i; *bad: a terminal must not get it. A byte that is no UTF-8 may be a control to
 * one that reads bytes (0x9b). */
static struct str char_at(struct str text, size_t i, bool *bad)
{
    size_t n = json_text_utf8(str_from(text, i));
    *bad = !n || str_control_at(text, i) || str_turn_at(text, i);
    return (struct str){ text.ptr + i, n ? n : 1 };
}

void clean_line(struct buf *to, struct str text)
{
    struct str c;
    bool bad;
    for (size_t i = 0; i < text.len; i += c.len) {
        c = char_at(text, i, &bad);
        buf_put(to, bad ? STR_LIT(" ") : c);
    }
}

void clean_vprintf(struct buf *to, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t len = (size_t)vsnprintf(NULL, 0, format, args);
    char *text = mem_alloc(len + 1, 1);
    vsnprintf(text, len + 1, format, again);
    va_end(again);
    bool ends = len && str_ends(str_of(format), "\n");
    clean_line(to, (struct str){ text, len - ends });
    buf_puts(to, ends ? "\n" : "");
    free(text);
}

void clean_printf(struct buf *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clean_vprintf(to, format, args);
    va_end(args);
}

void clean_text(struct buf *to, struct str text)
{
    struct str c;
    bool bad;
    for (size_t i = 0; i < text.len; i += c.len) {
        c = char_at(text, i, &bad);
        bad = bad && *c.ptr != '\n' && *c.ptr != '\t';
        for (size_t k = 0; bad && k < c.len; k++)
            buf_printf(to, "\\x%02x", (unsigned char)c.ptr[k]);
        if (!bad)
            buf_put(to, c);
    }
}

void put_padded(struct buf *to, const char *text, size_t width)
{
    size_t before = to->len;
    clean_line(to, str_of(*text ? text : "-"));
    while (to->len - before < width)
        buf_putc(to, ' ');
    buf_putc(to, ' ');
}

/* ---- JSON ----------------------------------------------------------------------------------- */

void json_int(struct buf *to, const char *name, int64_t value)
{
    json_put_name(to, name);
    buf_put_number(to, value);
}

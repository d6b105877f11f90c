#include "out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"

void clean_line(struct buf *to, struct str text)
{
    for (size_t i = 0, n; i < text.len; i += n ? n : 1) {
        n = str_control_at(text, i);
        buf_putc(to, n ? ' ' : text.ptr[i]);
    }
}

void clean_printf(struct buf *to, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t len = (size_t)vsnprintf(NULL, 0, format, args);
    char *text = mem_alloc(len + 1, 1);
    vsnprintf(text, len + 1, format, again);
    va_end(again);
    va_end(args);
    bool ends = len && str_ends(str_of(format), "\n");
    clean_line(to, (struct str){ text, len - ends });
    buf_puts(to, ends ? "\n" : "");
    free(text);
}

void clean_text(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        size_t n = str_control_at(text, i);
        if (!n || text.ptr[i] == '\n' || text.ptr[i] == '\t') {
            buf_putc(to, text.ptr[i]);
            continue;
        }
        for (size_t end = i + n; i < end; i++)
            buf_printf(to, "\\x%02x", (unsigned char)text.ptr[i]);
        i--;
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
    buf_printf(to, "%" PRId64, value);
}

#include "out.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"

#define WIDE     180
#define JSON_MAX (64u << 20)

/* A terminal must not get controls, nor a byte that is no UTF-8: that may be a control to one that
 * reads bytes (0x9b). On one line they become blanks, on several \xNN. */
static void clean(struct buf *to, struct str text, bool lines)
{
    for (size_t i = 0, n, len; i < text.len; i += len) {
        n = json_text_utf8(str_from(text, i));
        len = n ? n : 1;
        bool kept = lines && (text.ptr[i] == '\n' || text.ptr[i] == '\t');
        if (kept || (n && !str_control_at(text, i) && !str_turn_at(text, i)))
            buf_put(to, (struct str){ text.ptr + i, len });
        else if (!lines)
            buf_putc(to, ' ');
        else
            for (size_t k = i; k < i + len; k++)
                buf_printf(to, "\\x%02x", (unsigned char)text.ptr[k]);
    }
}

void clean_line(struct buf *to, struct str text)
{
    clean(to, text, false);
}

void clean_text(struct buf *to, struct str text)
{
    clean(to, text, true);
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

void put_padded(struct buf *to, const char *text, size_t width)
{
    size_t before = to->len;
    clean_line(to, str_of(*text ? text : "-"));
    while (to->len - before < width)
        buf_putc(to, ' ');
    buf_putc(to, ' ');
}

void put_cell(struct buf *to, const char *text, size_t width)
{
    char cut[64 + 1];
    (void)str_copy(cut, sizeof(cut), str_cut(str_of(text), width));
    put_padded(to, cut, width);
}

/* ---- the terminal's width ------------------------------------------------------------------- */

size_t out_width(void)
{
    struct winsize size = { .ws_col = 0 };
    uint64_t columns = 0;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        (void)str_to_u64(str_of(getenv("COLUMNS")), &columns);
    return size.ws_col ? size.ws_col : (size_t)columns;
}

bool out_narrow(void)
{
    return out_width() && out_width() < WIDE;
}

/* Bytes of what stands at i; *column: after it. A colour takes no column. */
static size_t step(struct str line, size_t i, size_t *column)
{
    ptrdiff_t colour = line.ptr[i] == '\033' ? str_find(str_from(line, i), 'm') : -1;
    size_t n = json_text_utf8(str_from(line, i));
    *column += colour < 0;
    return colour >= 0 ? (size_t)colour + 1 : n ? n : 1;
}

void put_fitted(struct buf *to, struct str line, size_t width)
{
    size_t columns = 0, column = 0, before;
    for (size_t i = 0; i < line.len;)
        i += step(line, i, &columns);
    for (size_t i = 0, n; i < line.len; i += n) {
        before = column;
        n = step(line, i, &column);
        if (!width || columns <= width || column < width || column == before)
            buf_put(to, (struct str){ line.ptr + i, n });
        else if (column == width)
            buf_puts(to, "…");
    }
}

void put_wrapped(struct buf *to, struct str text, size_t column, size_t indent, size_t width)
{
    for (size_t i = 0, len; i < text.len; i += len + 1) {
        for (len = 0; i + len < text.len && !strchr(" \n", text.ptr[i + len]);)
            len++;
        bool breaks = i && (text.ptr[i - 1] == '\n' || column + 1 + len > width);
        if (breaks)
            buf_printf(to, "\n%*s", (int)indent, "");
        else if (i)
            buf_putc(to, ' ');
        buf_put(to, (struct str){ text.ptr + i, len });
        column = breaks ? indent + len : column + (i > 0) + len;
    }
    buf_putc(to, '\n');
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_value(struct buf *to, const char *name, struct str type, va_list *args)
{
    if (str_is(type, "s")) {
        json_put_string(to, name, va_arg(*args, const char *));
    } else if (str_is(type, ".*s")) {
        int n = va_arg(*args, int);
        const char *text = va_arg(*args, const char *);
        json_put_text(to, name, n ? (struct str){ text, (size_t)n } : STR_NONE);
    } else if (str_is(type, "i")) {
        json_put_bool(to, name, va_arg(*args, int));
    } else if (str_is(type, "jd")) {
        json_put_time(to, name, va_arg(*args, intmax_t));
    } else {
        json_put_name(to, name);
        buf_put_number(to, str_is(type, "d") ? va_arg(*args, int) : va_arg(*args, int64_t));
    }
}

void put_json(struct buf *into, const char *members, ...)
{
    struct buf CLEANUP(buf_clear) line = BUF_INIT(JSON_MAX);
    struct buf *to = into ? into : &line;
    char name[64];
    va_list args;
    va_start(args, members);
    for (const char *at = members; *at;) {
        size_t len = strcspn(at, ":{}[] ");
        if (!len) {
            if (*at == '{')
                json_put_begin(to, NULL, *at);
            else if (*at != ' ')
                buf_putc(to, *at);
            at++;
            continue;
        }
        FORMAT(name, "%.*s", (int)len, at);
        at += len + strlen(":");
        len = strcspn(at, " {}[]"); /* 0: a bracket */
        if (len)
            put_value(to, name, (struct str){ at + 1, len - 1 }, &args);
        else
            json_put_begin(to, name, *at++);
        at += len;
    }
    va_end(args);
    if (!into)
        puts(buf_str(&line).ptr);
}

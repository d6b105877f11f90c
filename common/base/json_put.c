#include "json_put.h"

#include "clock.h"
#include "json_text.h"

void json_put_comma(struct buf *to)
{
    char last = to->len > 0 ? to->ptr[to->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':' && last != '\n')
        buf_putc(to, ',');
}

void json_put_name(struct buf *to, const char *name)
{
    json_put_comma(to);
    buf_putc(to, '"');
    buf_puts(to, name);
    buf_puts(to, "\":");
}

void json_put_begin(struct buf *to, const char *name, char bracket)
{
    if (name)
        json_put_name(to, name);
    else
        json_put_comma(to);
    buf_putc(to, bracket);
}

void json_put_text(struct buf *to, const char *name, struct str text)
{
    json_put_name(to, name);
    json_text_put(to, text);
}

void json_put_string(struct buf *to, const char *name, const char *text)
{
    json_put_text(to, name, text && *text ? str_of(text) : STR_NONE);
}

void json_put_number(struct buf *to, const char *name, int64_t n)
{
    json_put_name(to, name);
    if (n >= 0)
        buf_put_number(to, n);
    else
        buf_puts(to, "null");
}

void json_put_seconds(struct buf *to, const char *name, int64_t ms)
{
    char text[STR_NUMBER_SIZE];
    json_put_name(to, name);
    buf_put(to, ms >= 0 ? str_seconds(text, ms) : STR_LIT("null"));
}

void json_put_time(struct buf *to, const char *name, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (wall_ms > 0)
        clock_format(wall_ms, text);
    json_put_text(to, name, wall_ms > 0 ? str_of(text) : STR_NONE);
}

void json_put_bool(struct buf *to, const char *name, bool value)
{
    json_put_name(to, name);
    buf_puts(to, value ? "true" : "false");
}

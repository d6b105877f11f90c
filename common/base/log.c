#include "log.h"

#include <math.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "json_put.h"
#include "json_text.h"

enum {
    VALUE_MAX = 2048, /* bytes of one value; the rest is cut */
    LINE_MAX_BYTES = 32 * 1024,
};

/* Written by log_init before the first thread starts, read only afterwards. */
static struct {
    const char *daemon;
    enum log_level level;
    enum log_format format;
} settings = { .daemon = "crcr", .level = LOG_INFO, .format = LOG_JSON };

void log_init(const char *daemon, enum log_level level, enum log_format format)
{
    settings.daemon = daemon;
    settings.level = level;
    settings.format = format;
}

static const char *level_name(enum log_level level)
{
    static const char *const names[] = { "debug", "info", "warn", "error" };
    return names[level];
}

/* Text that reads well without quotes. */
static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || s.ptr[i] == '"' || s.ptr[i] == '=')
            return false;
    return s.len > 0;
}

static void put_value(struct buf *to, const struct log_field *f)
{
    struct str text = str_cut(f->text, VALUE_MAX);
    switch (f->type) {
    case LOG_FIELD_STR:
        if (settings.format == LOG_TEXT && is_word(text))
            buf_put(to, text);
        else
            json_text_put(to, text);
        return;
    case LOG_FIELD_INT:
        buf_put_number(to, f->number);
        return;
    case LOG_FIELD_REAL:
        if (isfinite(f->real))
            buf_printf(to, "%.6g", f->real);
        else
            buf_puts(to, "null"); /* JSON has no infinity */
        return;
    case LOG_FIELD_BOOL:
        buf_puts(to, f->number ? "true" : "false");
        return;
    }
}

/* A field that does not fit is left out, and so is what comes after it. */
static void put_fields(struct buf *to, const struct log_field *fields)
{
    size_t room_for_end = 4;
    to->max -= room_for_end;
    for (; fields->name; fields++) {
        size_t before = to->len;
        if (settings.format == LOG_JSON) {
            json_put_name(to, fields->name);
        } else {
            buf_printf(to, " %s=", fields->name);
        }
        put_value(to, fields);
        if (buf_full(to)) {
            to->len = before;
            to->full = false;
            break;
        }
    }
    to->max += room_for_end;
}

static void put_head(struct buf *to, enum log_level level, const char *event)
{
    char at[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms(), at);
    if (settings.format == LOG_TEXT) {
        buf_printf(to, "%s %-5s %s", at, level_name(level), event);
        return;
    }
    buf_putc(to, '{');
    json_put_string(to, "at", at);
    json_put_string(to, "level", level_name(level));
    json_put_string(to, "daemon", settings.daemon);
    json_put_string(to, "event", event);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if (level < settings.level)
        return;
    struct buf CLEANUP(buf_clear) line;
    buf_init(&line, LINE_MAX_BYTES);
    put_head(&line, level, event);
    put_fields(&line, fields);
    buf_puts(&line, settings.format == LOG_JSON ? "}\n" : "\n");
    struct str text = buf_str(&line);
    ssize_t n = write(STDERR_FILENO, text.ptr, text.len);
    (void)n; /* nowhere to say that stderr is gone */
}

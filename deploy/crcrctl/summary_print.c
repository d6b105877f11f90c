#include <inttypes.h>
#include <stdio.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_text.h"
#include "../../common/model/ids.h"
#include "clean.h"
#include "summary.h"

/* SGR codes by what an outcome means; the first that matches. */
static const struct {
    const char *outcome;
    const char *color;
} colors[] = {
    { "success", "32" },     { "dispatched", "32" }, { "failure", "31" },    { "failed", "31" },
    { "timed_out", "31" },   { "cancelled", "31" },  { "parked", "31" },     { "unknown", "33" },
    { "waiting", "33" },     { "waits", "33" },      { "superseded", "33" }, { "skipped", "33" },
    { "in_progress", "36" },
};

static const char *color_of(const char *outcome)
{
    for (size_t i = 0; i < sizeof(colors) / sizeof(*colors); i++)
        if (str_is(str_of(outcome), colors[i].outcome))
            return colors[i].color;
    return "0";
}

static void put_clean(struct buf *to, const char *text)
{
    clean_line(to, str_of(text));
}

static void put_padded(struct buf *to, const char *text, size_t width)
{
    size_t before = to->len;

    put_clean(to, text);
    while (to->len - before < width)
        buf_putc(to, ' ');
    buf_putc(to, ' ');
}

void summary_line(struct buf *to, const struct summary *s, unsigned shows)
{
    char at[CLOCK_TEXT_SIZE], text[64];
    const char *name = s->topic == TOPIC_COUNT ? s->topic_name : topic_base_name(s->topic);

    clock_format(s->at_ms, at);
    if (shows & SUMMARY_DATE)
        put_padded(to, at, 24);
    else
        put_padded(to, at + sizeof("2026-11-21T") - 1, 13);
    put_padded(to, name, 11);
    if (shows & SUMMARY_DELIVERY)
        put_padded(to, *s->delivery ? s->delivery : "-", 36);
    put_padded(to, *s->event ? s->event : "-", 19);
    snprintf(text, sizeof(text), "#%" PRId64, s->pr);
    put_padded(to, s->pr ? text : "-", 8);
    put_padded(to, s->tier ? level_name(s->tier) : "-", 2);
    put_padded(to, *s->repo ? s->repo : "-", 24);
    if (shows & SUMMARY_COLOR)
        buf_printf(to, "\033[%sm", color_of(s->outcome));
    put_padded(to, s->outcome, 11);
    if (shows & SUMMARY_COLOR)
        buf_puts(to, "\033[0m");
    put_clean(to, s->detail);
    buf_printf(to, "%s[%d]@%" PRId64, *s->detail ? "  " : "", (int)s->partition, s->offset);
}

static void put_text(struct buf *to, const char *name, const char *text)
{
    if (!*text)
        return;
    buf_printf(to, ",\"%s\":", name);
    json_text_put(to, str_of(text));
}

void summary_json(struct buf *to, const struct summary *s)
{
    char at[CLOCK_TEXT_SIZE];

    clock_format(s->at_ms, at);
    buf_printf(to, "{\"at\":\"%s\"", at);
    put_text(to, "topic", s->topic_name);
    buf_printf(to, ",\"partition\":%d,\"offset\":%" PRId64, (int)s->partition, s->offset);
    put_text(to, "delivery", s->delivery);
    put_text(to, "event", s->event);
    if (s->pr)
        buf_printf(to, ",\"pr\":%" PRId64, s->pr);
    put_text(to, "head_sha", s->head_sha);
    put_text(to, "repo", s->repo);
    if (s->tier)
        buf_printf(to, ",\"tier\":%d", s->tier);
    put_text(to, "kind", s->kind);
    put_text(to, "outcome", s->outcome);
    put_text(to, "detail", s->detail);
    buf_putc(to, '}');
}

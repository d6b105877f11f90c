#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_text.h"
#include "clean.h"
#include "timeline.h"

static void put_clean(struct buf *to, const char *text)
{
    clean_line(to, str_of(text));
}

static void put_delta(struct buf *to, int64_t ms)
{
    if (ms < 0)
        ms = 0;
    if (ms < 10000)
        buf_printf(to, "  %+7" PRId64 " ms  ", ms);
    else
        buf_printf(to, "  %+7.1f s   ", (double)ms / 1000.0);
}

static const char *step_name(const struct summary *s)
{
    static const char *const names[TOPIC_COUNT] = {
        [TOPIC_EVENTS] = "published",   [TOPIC_DISPATCH_L1] = "routed",
        [TOPIC_DISPATCH_L2] = "routed", [TOPIC_DISPATCH_L3] = "routed",
        [TOPIC_DISPATCH_L4] = "routed", [TOPIC_DELAY_10S] = "delayed",
        [TOPIC_DELAY_1M] = "delayed",   [TOPIC_DELAY_10M] = "delayed",
        [TOPIC_DELAY_1H] = "delayed",   [TOPIC_DISPATCHES] = "dispatch",
        [TOPIC_CALLBACKS] = "callback", [TOPIC_RECONCILE] = "check runs",
        [TOPIC_RESULTS] = "result",     [TOPIC_ALLOWLIST] = "allowlist",
        [TOPIC_DLQ] = "parked",
    };

    if (s->topic == TOPIC_DLQ && !str_is(str_of(s->outcome), "parked"))
        return "resolved";
    return s->topic == TOPIC_COUNT ? s->topic_name : names[s->topic];
}

static void put_step(struct buf *to, const struct summary *s, int64_t before_ms)
{
    char tier[8] = "";

    if (s->tier)
        snprintf(tier, sizeof(tier), "L%d ", s->tier);
    put_delta(to, s->at_ms - before_ms);
    buf_printf(to, "%-10s  ", step_name(s));
    if (*s->repo) {
        buf_puts(to, tier);
        put_clean(to, s->repo);
        buf_puts(to, "  ");
    }
    if (s->topic != TOPIC_EVENTS) {
        put_clean(to, s->outcome);
        buf_puts(to, "  ");
    }
    if (*s->detail) {
        put_clean(to, s->detail);
        buf_puts(to, "  ");
    }
    buf_printf(to, "%s[%d]@%" PRId64 "\n", s->topic_name, (int)s->partition, s->offset);
}

static const struct summary *event_of(const struct timeline *t, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (t->steps[i].topic == TOPIC_EVENTS)
            return &t->steps[i];
    return &t->steps[first];
}

static void put_head(struct buf *to, const struct summary *s)
{
    buf_puts(to, "delivery ");
    put_clean(to, s->delivery);
    buf_puts(to, "  ");
    put_clean(to, s->event);
    if (s->pr)
        buf_printf(to, "  #%" PRId64, s->pr);
    if (*s->head_sha) {
        buf_puts(to, "  head ");
        put_clean(to, s->head_sha);
    }
    buf_putc(to, '\n');
}

static int64_t put_accepted(struct buf *to, const struct summary *s)
{
    char at[CLOCK_TEXT_SIZE];

    if (s->topic != TOPIC_EVENTS || !s->received_ms)
        return s->at_ms;
    clock_format(s->received_ms, at);
    if (str_starts(str_of(s->detail), "redelivered"))
        buf_printf(to, "  %s  GitHub tried to deliver it, in vain; fetched later\n", at);
    else
        buf_printf(to, "  %s  accepted  last byte of the webhook\n", at);
    return s->received_ms;
}

static void put_standings(struct buf *to, const struct timeline *t, size_t first, size_t end,
                          int64_t now_ms, bool color)
{
    struct standing *all;
    size_t n = timeline_standings(t, first, end, now_ms, &all);

    buf_puts(to, n ? "downstreams\n" : "downstreams: none were routed to yet\n");
    for (size_t i = 0; i < n; i++) {
        buf_printf(to, "  L%d  ", all[i].tier);
        put_clean(to, all[i].repo);
        buf_puts(to, color ? "  \033[1m" : "  ");
        put_clean(to, all[i].state);
        buf_puts(to, color ? "\033[0m  " : "  ");
        put_clean(to, all[i].why);
        buf_putc(to, '\n');
    }
    free(all);
}

void timeline_checks_clear(struct timeline_checks *checks)
{
    for (size_t i = 0; i < checks->n; i++)
        free(checks->at[i].name);
    for (size_t i = 0; i < checks->n_comments; i++)
        free(checks->comments[i].repo);
    for (size_t i = 0; i < checks->n_states; i++) {
        free(checks->states[i].repo);
        free(checks->states[i].what);
        free(checks->states[i].state);
    }
    free(checks->at);
    free(checks->comments);
    free(checks->states);
    *checks = (struct timeline_checks){ .at = NULL };
}

static void put_states(struct buf *to, const struct timeline_checks *checks)
{
    buf_puts(to, checks->n_states ? "in Redis\n" : "in Redis: nothing of it\n");
    for (size_t i = 0; i < checks->n_states; i++) {
        buf_puts(to, "  ");
        put_clean(to, checks->states[i].repo);
        buf_puts(to, "  ");
        put_clean(to, checks->states[i].what);
        buf_puts(to, "  ");
        put_clean(to, checks->states[i].state);
        buf_putc(to, '\n');
    }
}

static void put_checks(struct buf *to, const struct timeline_checks *checks)
{
    if (*checks->trouble) {
        buf_puts(to, "Redis and check runs at GitHub: not looked at: ");
        put_clean(to, checks->trouble);
        buf_putc(to, '\n');
        return;
    }
    put_states(to, checks);
    buf_puts(to, checks->n ? "check runs at GitHub\n" : "check runs at GitHub: none\n");
    for (size_t i = 0; i < checks->n; i++) {
        buf_puts(to, "  ");
        put_clean(to, checks->at[i].name);
        buf_printf(to, "  %s  id %" PRId64 "\n", checks->at[i].completed ? "completed" : "open",
                   checks->at[i].id);
    }
    buf_puts(to, checks->n_comments ? "on-call comments at GitHub\n" : "");
    for (size_t i = 0; i < checks->n_comments; i++) {
        buf_puts(to, "  ");
        put_clean(to, checks->comments[i].repo);
        buf_printf(to, "  #%" PRId64 "  id %" PRId64 "\n", checks->comments[i].pr,
                   checks->comments[i].id);
    }
}

static void json_checks(struct buf *to, const struct timeline_checks *checks)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < checks->n; i++) {
        buf_puts(to, i ? ",{\"name\":" : "{\"name\":");
        json_text_put(to, str_of(checks->at[i].name));
        buf_printf(to, ",\"id\":%" PRId64 ",\"completed\":%s}", checks->at[i].id,
                   checks->at[i].completed ? "true" : "false");
    }
    buf_putc(to, ']');
}

static void json_comments(struct buf *to, const struct timeline_checks *checks)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < checks->n_comments; i++) {
        buf_puts(to, i ? ",{\"repo\":" : "{\"repo\":");
        json_text_put(to, str_of(checks->comments[i].repo));
        buf_printf(to, ",\"pr\":%" PRId64 ",\"id\":%" PRId64 "}", checks->comments[i].pr,
                   checks->comments[i].id);
    }
    buf_putc(to, ']');
}

static void json_states(struct buf *to, const struct timeline_checks *checks)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < checks->n_states; i++) {
        buf_puts(to, i ? ",{\"repo\":" : "{\"repo\":");
        json_text_put(to, str_of(checks->states[i].repo));
        buf_puts(to, ",\"what\":");
        json_text_put(to, str_of(checks->states[i].what));
        buf_puts(to, ",\"state\":");
        json_text_put(to, str_of(checks->states[i].state));
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

/* null: the view could not be asked. */
static void json_view(struct buf *to, const struct timeline_checks *checks)
{
    static const struct {
        const char *name;
        void (*put)(struct buf *to, const struct timeline_checks *checks);
    } parts[] = { { "view", json_states },
                  { "check_runs", json_checks },
                  { "comments", json_comments } };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        buf_printf(to, ",\"%s\":", parts[i].name);
        if (*checks->trouble)
            buf_puts(to, "null");
        else
            parts[i].put(to, checks);
    }
}

void timeline_print(struct buf *to, const struct timeline *t, size_t first, size_t end,
                    int64_t now_ms, const struct timeline_checks *checks, bool color)
{
    const struct summary *event = event_of(t, first, end);
    int64_t before_ms;

    put_head(to, event);
    before_ms = put_accepted(to, event);
    for (size_t i = first; i < end; i++) {
        put_step(to, &t->steps[i], before_ms);
        before_ms = t->steps[i].at_ms;
    }
    put_standings(to, t, first, end, now_ms, color);
    put_checks(to, checks);
}

void timeline_json(struct buf *to, const struct timeline *t, size_t first, size_t end,
                   int64_t now_ms, const struct timeline_checks *checks)
{
    struct standing *all;
    size_t n = timeline_standings(t, first, end, now_ms, &all);

    buf_puts(to, "{\"delivery\":");
    json_text_put(to, str_of(t->steps[first].delivery));
    buf_printf(to, ",\"received_ms\":%" PRId64 ",\"steps\":[",
               event_of(t, first, end)->received_ms);
    for (size_t i = first; i < end; i++) {
        buf_puts(to, i > first ? "," : "");
        summary_json(to, &t->steps[i]);
    }
    buf_puts(to, "],\"downstreams\":[");
    for (size_t i = 0; i < n; i++) {
        buf_printf(to, "%s{\"repo\":", i ? "," : "");
        json_text_put(to, str_of(all[i].repo));
        buf_printf(to, ",\"tier\":%d,\"state\":", all[i].tier);
        json_text_put(to, str_of(all[i].state));
        buf_puts(to, ",\"why\":");
        json_text_put(to, str_of(all[i].why));
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
    json_view(to, checks);
    buf_puts(to, "}\n");
    free(all);
}

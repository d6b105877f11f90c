#include "summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "../../common/model/result_record.h"
#include "../../common/model/task.h"
#include "out.h"
#include "repos.h"

static void set_repos(struct summary *s, struct str repos)
{
    free(s->repos);
    s->repos = repos.len ? str_dup(repos) : NULL;
}

/* ---- what each topic adds ------------------------------------------------------------------- */

/* Adds to detail; what does not fit is cut. */
PRINTF_LIKE(2, 3) static void say(struct summary *s, const char *format, ...)
{
    size_t used = strlen(s->detail);
    va_list args;
    va_start(args, format);
    vsnprintf(s->detail + used, sizeof(s->detail) - used, format, args);
    va_end(args);
}

/* Adds ", <what> <the header's value>" when it is there. */
static void put_note(struct summary *s, const struct headers *h, const char *name, const char *what)
{
    struct str value = headers_get(h, name);
    if (value.len)
        say(s, ", %s %.*s", what, STR_ARG(str_cut(value, 64)));
}

static void of_event(struct summary *s, const struct record *r)
{
    COPY(s->outcome, STR_LIT("accepted"));
    struct str source = headers_get(&r->headers, "source");
    if (!str_is(source, "webhook")) {
        COPY(s->detail, source); /* redelivered, replay */
        put_note(s, &r->headers, "again", "again");
    }
}

static void set_task(struct summary *s, struct str kind, struct str run_id, struct str again,
                     struct str seq, int64_t attempt)
{
    FORMAT(s->task, "%.*s|%.*s|%.*s", STR_ARG(kind), STR_ARG(run_id), STR_ARG(again));
    COPY(s->seq, seq);
    s->attempt = attempt;
}

/* "rerun_failed of run 17"; a dispatch repeats no run. */
static void put_kind(struct summary *s, struct str kind, struct str run_id)
{
    uint64_t number;
    const char *what = !str_is(kind, task_kind_name(TASK_EXPAND)) ? "run"
                       : str_to_u64(run_id, &number)              ? "check suite"
                                                                  : "the check";
    COPY(s->kind, kind);
    say(s, "%s", s->kind);
    if (run_id.len)
        say(s, " of %s %.*s", what, STR_ARG(str_cut(run_id, RUN_ID_MAX)));
}

static void of_task(struct summary *s, const struct record *r)
{
    const struct headers *h = &r->headers;
    int64_t attempt = headers_get_i64(h, "attempt", 1);
    COPY(s->outcome, STR_LIT("routed"));
    set_task(s, headers_get(h, "kind"), headers_get(h, "run_id"), headers_get(h, "again"),
             headers_get(h, "dlq").len ? STR_NONE : headers_get(h, "seq"), attempt);
    put_kind(s, headers_get(h, "kind"), headers_get(h, "run_id"));
    say(s, ", %zu bytes", r->value.len);
    if (attempt > 1)
        say(s, ", attempt %" PRId64, attempt);
    if (headers_get(h, "payload_trimmed").len)
        say(s, ", trimmed to fit");
    put_note(s, h, "again", "again");
    put_note(s, h, "dlq", "replayed from dlq");
}

static void of_delay(struct summary *s, const struct record *r)
{
    char until[CLOCK_TEXT_SIZE] = "";
    COPY(s->outcome, STR_LIT("waits"));
    clock_format(headers_get_i64(&r->headers, "not_before_ms", 0), until);
    say(s, "until %s for %.*s: %.*s", until, STR_ARG(headers_get(&r->headers, "to_topic")),
        STR_ARG(headers_get(&r->headers, "error")));
}

static void of_outcome(struct summary *s, const struct record *r)
{
    struct outcome o;
    struct why why;
    if (outcome_from_json(r->value, &o, &why)) {
        say(s, "unreadable: %.300s", why.text);
        return;
    }
    COPY(s->delivery, str_of(o.delivery_id));
    COPY(s->event, str_of(o.event_type));
    COPY(s->head_sha, str_of(o.head_sha));
    set_repos(s, str_of(o.repo));
    COPY(s->outcome, str_of(outcome_kind_name(o.outcome)));
    s->pr = o.pr_number;
    s->tier = o.level;
    if (o.at_ms && o.outcome != OUTCOME_DUPLICATE) /* which has that of the first call */
        s->at_ms = o.at_ms;
    COPY(s->kind, str_of(o.kind));
    set_task(s, str_of(o.kind), str_of(o.run_id), str_of(o.again), str_of(o.seq), o.attempt);
    if (*o.run_id) {
        put_kind(s, str_of(o.kind), str_of(o.run_id));
        say(s, ", ");
    }
    if (o.http_status)
        say(s, "HTTP %d, ", o.http_status);
    say(s, "%" PRId64 " ms", o.latency_ms);
    if (o.maybe_duplicate)
        say(s, ", maybe a duplicate: %s", task_mark_name(o.maybe_duplicate));
    if (*o.again)
        say(s, ", again %s", o.again);
    if (o.next_ms) {
        char at[CLOCK_TEXT_SIZE];
        clock_format(o.next_ms, at);
        say(s, ", next try %s", at);
    }
    if (*o.error)
        say(s, ": %.300s", o.error);
}

/* The state of a job in one word, and which job. */
static void set_job(struct summary *s, enum job_state state, const char *conclusion,
                    struct str workflow, struct str job)
{
    bool concluded = state == JOB_COMPLETED && conclusion && *conclusion;
    COPY(s->outcome, str_of(concluded ? conclusion : job_state_name(state)));
    workflow = str_cut(workflow, 149);
    job = str_cut(job, 149);
    if (str_eq(workflow, job)) /* a job without a name of its own */
        job.len = 0;
    FORMAT(s->job, "%.*s%s%.*s", STR_ARG(workflow), job.len ? " / " : "", STR_ARG(job));
    say(s, "%s", s->job);
}

/* As the fold reads it; the sweep reports an overdue job. */
static void of_callback(struct summary *s, const struct record *r)
{
    struct callback c;
    struct why why;
    if (callback_parse(r->value, headers_get(&r->headers, "run_attempt"), &c, &why)) {
        say(s, "unreadable: %.300s", why.text);
    } else {
        COPY(s->event, str_of(c.event_type));
        COPY(s->run_id, str_of(c.run_id));
        COPY(s->run_attempt, str_of(c.run_attempt));
        COPY(s->check_run_id, str_of(c.check_run_id));
        set_job(s, c.status, c.conclusion, str_of(c.workflow_name), str_of(c.job_name));
        s->job_state =
            str_is(headers_get(&r->headers, "provenance"), "sweeper") ? JOB_TIMED_OUT : c.status;
        callback_clear(&c);
    }
    if (*s->run_attempt && strcmp(s->run_attempt, "1") != 0)
        say(s, ", attempt %s", s->run_attempt);
    put_note(s, &r->headers, "replay", "replay");
}

static void of_result(struct summary *s, const struct record *r)
{
    struct result_record row;
    struct why why;
    if (result_record_from_json(r->value, &row, &why)) {
        say(s, "%s%.300s", r->value.ptr ? "unreadable: " : "removed", r->value.ptr ? why.text : "");
        return;
    }
    COPY(s->delivery, str_of(row.delivery_id));
    COPY(s->event, str_of(row.event_type));
    COPY(s->head_sha, str_of(row.head_sha));
    set_repos(s, str_of(row.repo));
    s->pr = row.pr_number;
    s->tier = row.level > 0 ? (int)row.level : 0;
    set_job(s, row.state, row.conclusion, str_of(row.workflow_name), str_of(row.job_name));
    result_record_clear(&row);
}

static void of_dirty(struct summary *s, const struct record *r)
{
    struct str rest = r->key, sha;
    COPY(s->outcome, STR_LIT("dirty"));
    if (str_split(&rest, '/', &sha)) {
        COPY(s->head_sha, sha);
        set_repos(s, rest);
    }
    COPY(s->detail, r->value);
}

static void of_allowlist(struct summary *s, const struct record *r)
{
    COPY(s->outcome, r->key);
    say(s, "%.*s, sha %.12s, %zu bytes", STR_ARG(headers_get(&r->headers, "source")),
        headers_get(&r->headers, "sha").len >= 12 ? headers_get(&r->headers, "sha").ptr : "?",
        r->value.len);
}

static void of_parked(struct summary *s, const struct record *r)
{
    struct str resolves = headers_get(&r->headers, "resolves");
    if (resolves.ptr) {
        COPY(s->outcome, headers_get(&r->headers, "class")); /* replayed, dropped */
        say(s, "by hand: dlq %.*s, from %.*s", STR_ARG(resolves),
            STR_ARG(headers_get(&r->headers, "source_topic")));
        return;
    }
    COPY(s->outcome, STR_LIT("parked"));
    say(s, "%.*s from %.*s: %.*s", STR_ARG(headers_get(&r->headers, "class")),
        STR_ARG(headers_get(&r->headers, "source_topic")),
        STR_ARG(headers_get(&r->headers, "error")));
}

static void of_audit(struct summary *s, const struct record *r)
{
    const struct headers *h = &r->headers;
    COPY(s->event, headers_get(h, "verb"));
    COPY(s->outcome, headers_get(h, "state"));
    say(s, "%.*s", STR_ARG(headers_get(h, "who")));
    put_note(s, h, "exit_code", "exit");
    say(s, ": %.*s%.*s", STR_ARG(headers_get(h, "arguments")), STR_ARG(headers_get(h, "result")));
    if (headers_get(h, "reason").len)
        say(s, " (%.*s)", STR_ARG(headers_get(h, "reason")));
}

static void (*const readers[TOPIC_COUNT])(struct summary *, const struct record *) = {
    [TOPIC_EVENTS] = of_event,        [TOPIC_DISPATCH_L1] = of_task,
    [TOPIC_DISPATCH_L2] = of_task,    [TOPIC_DISPATCH_L3] = of_task,
    [TOPIC_DISPATCH_L4] = of_task,    [TOPIC_DELAY_10S] = of_delay,
    [TOPIC_DELAY_1M] = of_delay,      [TOPIC_DELAY_10M] = of_delay,
    [TOPIC_DELAY_1H] = of_delay,      [TOPIC_RDELAY_1M] = of_delay,
    [TOPIC_RDELAY_10M] = of_delay,    [TOPIC_RDELAY_1H] = of_delay,
    [TOPIC_DISPATCHES] = of_outcome,  [TOPIC_CALLBACKS] = of_callback,
    [TOPIC_RECONCILE] = of_dirty,     [TOPIC_RESULTS] = of_result,
    [TOPIC_ALLOWLIST] = of_allowlist, [TOPIC_DLQ] = of_parked,
    [TOPIC_AUDIT] = of_audit,
};

void summary_of(struct summary *ret, const struct topics *topics, const struct record *record)
{
    const struct headers *h = &record->headers;
    struct str name = str_of(record->at.topic), action = headers_get(h, "action");
    *ret = (struct summary){ .topic = topics_find(topics, name),
                             .partition = record->at.partition,
                             .offset = record->at.offset,
                             .at_ms = record->timestamp_ms };
    COPY(ret->topic_name, name);
    COPY(ret->delivery, headers_get(h, "delivery"));
    FORMAT(ret->event, "%.*s%s%.*s", STR_ARG(headers_get(h, "event")), action.len ? " " : "",
           STR_ARG(action));
    ret->pr = headers_get_i64(h, "pr", 0);
    COPY(ret->head_sha, headers_get(h, "head_sha"));
    set_repos(ret, task_repos(h));
    ret->tier = level_parse(headers_get(h, "tier"));
    if (!ret->tier)
        ret->tier = level_parse(headers_get(h, "level")); /* callbacks */
    ret->received_ms = headers_get_i64(h, "received_ms", 0);
    if (ret->topic != TOPIC_COUNT)
        readers[ret->topic](ret, record);
}

void summary_clear(struct summary *s)
{
    free(s->repos);
    s->repos = NULL;
}

bool filter_matches(const struct filter *f, const struct summary *s)
{
    return (!f->delivery.len || str_eq(f->delivery, str_of(s->delivery))) &&
           repos_have(str_of(s->repos), f->repo) && (!f->pr || f->pr == s->pr) &&
           (!f->tier || f->tier == s->tier);
}

/* ---- text and JSON -------------------------------------------------------------------------- */

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

void summary_line(struct buf *to, const struct summary *s, unsigned shows)
{
    char at[CLOCK_TEXT_SIZE], text[REPO_MAX + 16];
    const char *color = "";
    const char *name = s->topic == TOPIC_COUNT ? s->topic_name : topic_base_name(s->topic);
    clock_format(s->at_ms, at);
    bool narrow = shows & SUMMARY_NARROW;
    if (shows & SUMMARY_DATE)
        put_cell(to, at + (narrow ? strlen("2026-") : 0), narrow ? 14 : 24);
    else
        put_padded(to, at + strlen("2026-11-21T"), 13);
    put_padded(to, name, 11);
    if (shows & SUMMARY_DELIVERY)
        (narrow ? put_cell : put_padded)(to, s->delivery, narrow ? 8 : 36);
    if (!narrow)
        put_padded(to, s->event, 19);
    FORMAT(text, "#%" PRId64, s->pr);
    put_padded(to, s->pr ? text : "", 8);
    put_padded(to, s->tier ? level_name(s->tier) : "", 2);
    repos_short(str_of(s->repos), text, sizeof(text));
    (narrow ? put_cell : put_padded)(to, text, narrow ? 18 : 24);
    for (size_t i = 0; i < sizeof(colors) / sizeof(*colors) && !*color; i++)
        if (str_is(str_of(s->outcome), colors[i].outcome))
            color = colors[i].color;
    if (shows & SUMMARY_COLOR)
        buf_printf(to, "\033[%sm", *color ? color : "0");
    put_padded(to, s->outcome, 11);
    if (shows & SUMMARY_COLOR)
        buf_puts(to, "\033[0m");
    clean_line(to, str_of(s->detail));
    repos_put_rest(to, str_of(s->repos));
    buf_printf(to, "%s[%d]@%" PRId64, *s->detail ? "  " : "", (int)s->partition, s->offset);
}

static void json_known(struct buf *to, const char *name, const char *text)
{
    if (*text)
        json_put_string(to, name, text);
}

void summary_json(struct buf *to, const struct summary *s)
{
    put_json(to, "{at:%jd", (intmax_t)s->at_ms);
    json_known(to, "topic", s->topic_name);
    put_json(to, "partition:%d offset:%" PRId64, (int)s->partition, s->offset);
    json_known(to, "delivery", s->delivery);
    json_known(to, "event", s->event);
    if (s->pr)
        put_json(to, "pr:%" PRId64, s->pr);
    json_known(to, "head_sha", s->head_sha);
    repos_json(to, str_of(s->repos));
    if (s->tier)
        put_json(to, "tier:%d", s->tier);
    json_known(to, "kind", s->kind);
    json_known(to, "outcome", s->outcome);
    json_known(to, "detail", s->detail);
    buf_putc(to, '}');
}

#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "../../common/model/json_scan.h"
#include "out.h"
#include "repos.h"

/* ---- the headers that all topics share ------------------------------------------------------ */

static void from_headers(struct summary *s, const struct headers *h)
{
    struct str action = headers_get(h, "action");
    struct str event = headers_get(h, "event");
    COPY(s->delivery, headers_get(h, "delivery"));
    snprintf(s->event, sizeof(s->event), "%.*s%s%.*s", STR_ARG(event), action.len ? " " : "",
             STR_ARG(action));
    s->pr = headers_get_i64(h, "pr", 0);
    COPY(s->head_sha, headers_get(h, "head_sha"));
    COPY(s->repos, task_repos(h));
    s->tier = level_parse(headers_get(h, "tier"));
    if (!s->tier)
        s->tier = level_parse(headers_get(h, "level")); /* callbacks */
    s->received_ms = headers_get_i64(h, "received_ms", 0);
}

/* ---- what each topic adds ------------------------------------------------------------------- */

/* Adds ", <what> <the header's value>" when it is there. */
static void put_note(struct summary *s, const struct headers *h, const char *name, const char *what)
{
    struct str value = headers_get(h, name);
    size_t used = strlen(s->detail);
    if (value.len)
        snprintf(s->detail + used, sizeof(s->detail) - used, ", %s %.*s", what,
                 STR_ARG(str_cut(value, 64)));
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

/* "rerun_failed of run 17"; a dispatch repeats no run. Gives the length. */
static int put_kind(struct summary *s, struct str kind, struct str run_id)
{
    uint64_t number;
    const char *what = str_to_u64(run_id, &number) ? "check suite" : "the check";
    COPY(s->kind, kind);
    if (!run_id.len)
        return snprintf(s->detail, sizeof(s->detail), "%s", s->kind);
    if (run_id.len > RUN_ID_MAX)
        run_id.len = RUN_ID_MAX;
    return snprintf(s->detail, sizeof(s->detail), "%s of %s %.*s", s->kind,
                    str_is(kind, task_kind_name(TASK_EXPAND)) ? what : "run", STR_ARG(run_id));
}

static void of_task(struct summary *s, const struct record *r)
{
    const struct headers *h = &r->headers;
    int64_t attempt = headers_get_i64(h, "attempt", 1);
    int used;
    COPY(s->outcome, STR_LIT("routed"));
    used = put_kind(s, headers_get(h, "kind"), headers_get(h, "run_id"));
    used +=
        snprintf(s->detail + used, sizeof(s->detail) - (size_t)used, ", %zu bytes", r->value.len);
    if (attempt > 1)
        used += snprintf(s->detail + used, sizeof(s->detail) - (size_t)used, ", attempt %" PRId64,
                         attempt);
    if (headers_get(h, "payload_trimmed").len)
        snprintf(s->detail + used, sizeof(s->detail) - (size_t)used, ", trimmed to fit");
    put_note(s, h, "again", "again");
    put_note(s, h, "dlq", "replayed from dlq");
}

static void of_delay(struct summary *s, const struct record *r)
{
    char until[CLOCK_TEXT_SIZE] = "";
    COPY(s->outcome, STR_LIT("waits"));
    s->not_before_ms = headers_get_i64(&r->headers, "not_before_ms", 0);
    clock_format(s->not_before_ms, until);
    snprintf(s->detail, sizeof(s->detail), "until %s for %.*s: %.*s", until,
             STR_ARG(headers_get(&r->headers, "to_topic")),
             STR_ARG(headers_get(&r->headers, "error")));
}

static void of_outcome(struct summary *s, const struct record *r)
{
    struct outcome o;
    struct why why;
    int used = 0;
    if (outcome_from_json(r->value, &o, &why)) {
        snprintf(s->detail, sizeof(s->detail), "unreadable: %.300s", why.text);
        return;
    }
    COPY(s->delivery, str_of(o.delivery_id));
    COPY(s->event, str_of(o.event_type));
    COPY(s->head_sha, str_of(o.head_sha));
    COPY(s->repos, str_of(o.repo));
    COPY(s->outcome, str_of(outcome_kind_name(o.outcome)));
    s->pr = o.pr_number;
    s->tier = o.level;
    if (o.at_ms)
        s->at_ms = o.at_ms;
    COPY(s->kind, str_of(o.kind));
    if (*o.run_id)
        used = put_kind(s, str_of(o.kind), str_of(o.run_id));
    if (o.http_status)
        used += snprintf(s->detail + used, sizeof(s->detail) - (size_t)used, "%sHTTP %d",
                         used ? ", " : "", o.http_status);
    snprintf(s->detail + used, sizeof(s->detail) - (size_t)used, "%s%" PRId64 " ms%s%s%s%s%s%.300s",
             used ? ", " : "", o.latency_ms, o.maybe_duplicate ? ", maybe a duplicate: " : "",
             task_mark_name(o.maybe_duplicate), *o.again ? ", again " : "", o.again,
             *o.error ? ": " : "", o.error);
}

/* Texts that a scan looks for, and where each goes. */
struct text_want {
    const char *path;
    char *to;
    size_t size;
};

static bool on_text(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    const struct text_want *to = (const struct text_want *)opaque + want;
    (void)index;
    if (type == JSON_SCAN_STRING || type == JSON_SCAN_NUMBER)
        (void)str_copy(to->to, to->size, str_cut(text, to->size - 1));
    return true;
}

#define MAX_WANTS 10
static bool scan_texts(struct str json, struct text_want *texts, size_t n)
{
    struct json_want wants[MAX_WANTS];
    const struct json_rules rules = { .must_be_object = true, .nul_in_others = true };
    for (size_t i = 0; i < n; i++)
        wants[i] = (struct json_want){ .path = texts[i].path, .found = on_text };
    return !json_scan(json, &rules, wants, n, texts, NULL);
}
#define WANT(name, to)                                                                             \
    {                                                                                              \
        (name), (to), sizeof(to)                                                                   \
    }

/* The state of a job in one word, and which job. */
static void set_job(struct summary *s, const char *status, const char *conclusion,
                    const char *workflow, const char *job)
{
    bool completed = str_is(str_of(status), "completed") && *conclusion;
    COPY(s->outcome, str_of(completed ? conclusion : status));
    snprintf(s->detail, sizeof(s->detail), "%s%s%s", workflow, *job ? " / " : "", job);
}

/* Facts as the fold reads them; the sweep reports an overdue job. */
static void identify_job(struct summary *s, const struct headers *h, const char *status,
                         const char *attempt)
{
    bool swept = str_is(headers_get(h, "provenance"), "sweeper");
    uint64_t number;
    s->job_state = swept ? JOB_TIMED_OUT : job_state_of(str_of(status));
    COPY(s->job, str_of(s->detail));
    struct str said = *attempt ? str_of(attempt) : headers_get(h, "run_attempt");
    if (said.len == 0)
        said = STR_LIT("1");
    if (str_to_u64(said, &number) && number <= INT32_MAX)
        s->attempt = (int64_t)number;
    if (!*s->check_run_id)
        snprintf(s->check_run_id, sizeof(s->check_run_id), "%s-%.*s", s->run_id, STR_ARG(said));
}

static void of_callback(struct summary *s, const struct record *r)
{
    char status[32] = "", conclusion[32] = "", workflow[150] = "", job[150] = "", attempt[32] = "";
    struct text_want wants[] = {
        WANT("event_type", s->event),
        WANT("workflow.status", status),
        WANT("workflow.conclusion", conclusion),
        WANT("workflow.name", workflow),
        WANT("workflow.job_name", job),
        WANT("workflow.run_id", s->run_id),
        WANT("workflow.run_attempt", attempt),
        WANT("workflow.check_run_id", s->check_run_id),
    };
    if (!scan_texts(r->value, wants, sizeof(wants) / sizeof(*wants))) {
        snprintf(s->detail, sizeof(s->detail), "unreadable");
    } else {
        set_job(s, status, conclusion, workflow, job);
        identify_job(s, &r->headers, status, attempt);
    }
    if (s->attempt > 1)
        snprintf(s->detail, sizeof(s->detail), "%s, attempt %" PRId64, s->job, s->attempt);
    put_note(s, &r->headers, "replay", "replay");
}

static void of_result(struct summary *s, const struct record *r)
{
    char status[32] = "", conclusion[32] = "", workflow[150] = "", job[150] = "", level[8] = "";
    char pr[24] = "";
    struct text_want wants[] = {
        WANT("delivery_id", s->delivery),
        WANT("event_type", s->event),
        WANT("pytorch_head_sha", s->head_sha),
        WANT("downstream_repo", s->repos),
        WANT("downstream_repo_level", level),
        WANT("pr_number", pr),
        WANT("status", status),
        WANT("conclusion", conclusion),
        WANT("workflow_name", workflow),
        WANT("job_name", job),
    };
    uint64_t number;
    if (!scan_texts(r->value, wants, sizeof(wants) / sizeof(*wants))) {
        snprintf(s->detail, sizeof(s->detail), r->value.ptr ? "unreadable" : "removed");
        return;
    }
    set_job(s, status, conclusion, workflow, job);
    if (str_to_u64(str_of(pr), &number))
        s->pr = (int64_t)number;
    s->tier = level_parse(str_of(level));
}

static void of_dirty(struct summary *s, const struct record *r)
{
    struct str rest = r->key, sha;
    COPY(s->outcome, STR_LIT("dirty"));
    if (str_split(&rest, '/', &sha)) {
        COPY(s->head_sha, sha);
        COPY(s->repos, rest);
    }
    COPY(s->detail, r->value);
}

static void of_allowlist(struct summary *s, const struct record *r)
{
    COPY(s->outcome, r->key);
    snprintf(s->detail, sizeof(s->detail), "%.*s, sha %.12s, %zu bytes",
             STR_ARG(headers_get(&r->headers, "source")),
             headers_get(&r->headers, "sha").len >= 12 ? headers_get(&r->headers, "sha").ptr : "?",
             r->value.len);
}

static void of_parked(struct summary *s, const struct record *r)
{
    struct str resolves = headers_get(&r->headers, "resolves");
    if (resolves.ptr) {
        COPY(s->outcome, headers_get(&r->headers, "class")); /* replayed, dropped */
        snprintf(s->detail, sizeof(s->detail), "by hand: dlq %.*s, from %.*s", STR_ARG(resolves),
                 STR_ARG(headers_get(&r->headers, "source_topic")));
        return;
    }
    COPY(s->outcome, STR_LIT("parked"));
    snprintf(s->detail, sizeof(s->detail), "%.*s from %.*s: %.*s",
             STR_ARG(headers_get(&r->headers, "class")),
             STR_ARG(headers_get(&r->headers, "source_topic")),
             STR_ARG(headers_get(&r->headers, "error")));
}

static void (*const readers[TOPIC_COUNT])(struct summary *, const struct record *) = {
    [TOPIC_EVENTS] = of_event,       [TOPIC_DISPATCH_L1] = of_task,
    [TOPIC_DISPATCH_L2] = of_task,   [TOPIC_DISPATCH_L3] = of_task,
    [TOPIC_DISPATCH_L4] = of_task,   [TOPIC_DELAY_10S] = of_delay,
    [TOPIC_DELAY_1M] = of_delay,     [TOPIC_DELAY_10M] = of_delay,
    [TOPIC_DELAY_1H] = of_delay,     [TOPIC_DISPATCHES] = of_outcome,
    [TOPIC_CALLBACKS] = of_callback, [TOPIC_RECONCILE] = of_dirty,
    [TOPIC_RESULTS] = of_result,     [TOPIC_ALLOWLIST] = of_allowlist,
    [TOPIC_DLQ] = of_parked,
};

void summary_of(struct summary *ret, const struct topics *topics, const struct record *record)
{
    struct str name = str_of(record->at.topic);
    *ret = (struct summary){ .topic = topics_find(topics, name),
                             .partition = record->at.partition,
                             .offset = record->at.offset,
                             .at_ms = record->timestamp_ms };
    COPY(ret->topic_name, name);
    from_headers(ret, &record->headers);
    if (ret->topic != TOPIC_COUNT)
        readers[ret->topic](ret, record);
}

bool filter_matches(const struct filter *f, const struct summary *s)
{
    if (f->delivery.len && !str_eq(f->delivery, str_of(s->delivery)))
        return false;
    return repos_have(str_of(s->repos), f->repo) && (!f->pr || f->pr == s->pr) &&
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

static const char *color_of(const char *outcome)
{
    for (size_t i = 0; i < sizeof(colors) / sizeof(*colors); i++)
        if (str_is(str_of(outcome), colors[i].outcome))
            return colors[i].color;
    return "0";
}

void summary_line(struct buf *to, const struct summary *s, unsigned shows)
{
    char at[CLOCK_TEXT_SIZE], text[REPO_MAX + 16];
    const char *name = s->topic == TOPIC_COUNT ? s->topic_name : topic_base_name(s->topic);
    clock_format(s->at_ms, at);
    if (shows & SUMMARY_DATE)
        put_padded(to, at, 24);
    else
        put_padded(to, at + sizeof("2026-11-21T") - 1, 13);
    put_padded(to, name, 11);
    if (shows & SUMMARY_DELIVERY)
        put_padded(to, s->delivery, 36);
    put_padded(to, s->event, 19);
    snprintf(text, sizeof(text), "#%" PRId64, s->pr);
    put_padded(to, s->pr ? text : "", 8);
    put_padded(to, s->tier ? level_name(s->tier) : "", 2);
    repos_short(str_of(s->repos), text, sizeof(text));
    put_padded(to, text, 24);
    if (shows & SUMMARY_COLOR)
        buf_printf(to, "\033[%sm", color_of(s->outcome));
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
        json_text(to, name, text);
}

void summary_json(struct buf *to, const struct summary *s)
{
    json_element(to);
    json_time(to, "at", s->at_ms);
    json_known(to, "topic", s->topic_name);
    json_int(to, "partition", s->partition);
    json_int(to, "offset", s->offset);
    json_known(to, "delivery", s->delivery);
    json_known(to, "event", s->event);
    if (s->pr)
        json_int(to, "pr", s->pr);
    json_known(to, "head_sha", s->head_sha);
    repos_json(to, str_of(s->repos));
    if (s->tier)
        json_int(to, "tier", s->tier);
    json_known(to, "kind", s->kind);
    json_known(to, "outcome", s->outcome);
    json_known(to, "detail", s->detail);
    buf_putc(to, '}');
}

/* The JSON value of the dispatches topic (task.h). */
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/json_put.h"
#include "ids.h"
#include "task.h"

static const char *const outcome_names[] = {
    [OUTCOME_DISPATCHED] = "dispatched", [OUTCOME_UNKNOWN] = "unknown",
    [OUTCOME_WAITING] = "waiting",       [OUTCOME_FAILED] = "failed",
    [OUTCOME_SUPERSEDED] = "superseded", [OUTCOME_SKIPPED] = "skipped",
    [OUTCOME_DUPLICATE] = "duplicate",
};
static const char *const reason_names[] = {
    [REASON_BREAKER] = "breaker", [REASON_LIMIT] = "limit",   [REASON_SLOW] = "slow",
    [REASON_FAILED] = "failed",   [REASON_PAUSED] = "paused",
};
#define REASON_NAMES  (sizeof(reason_names) / sizeof(reason_names[0]))
#define OUTCOME_NAMES (sizeof(outcome_names) / sizeof(outcome_names[0]))

const char *outcome_kind_name(enum outcome_kind kind)
{
    return outcome_names[kind];
}

void outcome_init(struct outcome *o, const struct task *task)
{
    memset(o, 0, sizeof(*o));
    str_copy(o->delivery_id, sizeof(o->delivery_id), task->event.delivery);
    str_copy(o->repo, sizeof(o->repo), task->repo);
    str_copy(o->kind, sizeof(o->kind), str_of(task_kind_name(task->kind)));
    str_copy(o->run_id, sizeof(o->run_id), task->run_id);
    str_copy(o->again, sizeof(o->again), task->event.again);
    str_copy(o->event_type, sizeof(o->event_type), str_of(event_kind_name(task->event.kind)));
    str_copy(o->action, sizeof(o->action), task->event.action);
    str_copy(o->head_sha, sizeof(o->head_sha), task->event.head_sha);
    if (!str_is(task->event.source, "webhook"))
        str_copy(o->source, sizeof(o->source), task->event.source);
    o->received_ms = task->event.received_ms;
    o->level = task->level;
    o->pr_number = task->event.pr;
    o->attempt = task->attempt;
    o->maybe_duplicate = task->maybe_duplicate;
    if (!task_can_be_superseded(task))
        return;
    task_seq_text(&task->seq, o->seq);
    str_copy(o->event_key, sizeof(o->event_key), task->event_key);
}

/* A number that is 0 when it is not known is written as null. */
static void put_number(struct buf *to, const char *name, int64_t number)
{
    json_put_number(to, name, number ? number : -1);
}

void outcome_to_json(const struct outcome *o, struct buf *to)
{
    char at[CLOCK_TEXT_SIZE];
    clock_format(o->at_ms, at);
    buf_putc(to, '{');
    json_put_string(to, "delivery_id", o->delivery_id);
    json_put_string(to, "repo", o->repo);
    json_put_string(to, "tier", level_name(o->level));
    json_put_string(to, "kind", o->kind);
    json_put_string(to, "run_id", o->run_id);
    json_put_string(to, "event_type", o->event_type);
    put_number(to, "pr_number", o->pr_number);
    json_put_string(to, "head_sha", o->head_sha);
    json_put_string(to, "outcome", outcome_names[o->outcome]);
    put_number(to, "http_status", o->http_status);
    put_number(to, "attempt", o->attempt);
    json_put_name(to, "latency_ms");
    buf_put_number(to, o->latency_ms);
    if (o->reason)
        json_put_string(to, "reason", reason_names[o->reason]);
    json_put_string(to, "error", o->error);
    if (*o->again)
        json_put_string(to, "again", o->again);
    if (*o->source)
        json_put_string(to, "source", o->source);
    if (*o->seq) {
        json_put_string(to, "seq", o->seq);
        json_put_string(to, "event_key", o->event_key);
    }
    json_put_string(to, "at", at);
    json_put_string(to, "maybe_duplicate", task_mark_name(o->maybe_duplicate));
    json_put_string(to, "action", o->action);
    put_number(to, "received_ms", o->received_ms);
    if (o->next_ms)
        json_put_number(to, "next_ms", o->next_ms);
    buf_putc(to, '}');
}

/* The text members, where they go and whether a record without one is unreadable. */
static const struct {
    const char *name;
    size_t at, size;
    bool needed;
} texts[] = {
#define TEXT(name, field, needed)                                                                  \
    {                                                                                              \
        name, offsetof(struct outcome, field), sizeof(((struct outcome *)0)->field), needed        \
    }
    TEXT("delivery_id", delivery_id, true),
    TEXT("repo", repo, true),
    TEXT("kind", kind, true),
    TEXT("run_id", run_id, false),
    TEXT("again", again, false),
    TEXT("source", source, false),
    TEXT("event_type", event_type, false),
    TEXT("action", action, false),
    TEXT("head_sha", head_sha, false),
    TEXT("error", error, false),
    TEXT("seq", seq, false),
    TEXT("event_key", event_key, false),
#undef TEXT
};

static enum err read_texts(const json_t *json, struct outcome *o, struct why *why)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const json_t *value = json_object_get(json, texts[i].name);
        bool absent = !value || json_is_null(value);
        if (absent && texts[i].needed)
            return why_set(why, ERR_REFUSE, "outcome: %s is missing", texts[i].name);
        if (absent)
            continue;
        struct str text = { json_string_value(value), json_string_length(value) };
        if (!text.ptr || (texts[i].needed && text.len == 0) ||
            !str_copy((char *)o + texts[i].at, texts[i].size, text))
            return why_set(why, ERR_REFUSE, "outcome: %s must be a string of %d to %zu bytes",
                           texts[i].name, texts[i].needed ? 1 : 0, texts[i].size - 1);
    }
    return OK;
}

static bool read_int(const json_t *json, const char *name, int *ret)
{
    const json_t *value = json_object_get(json, name);
    if (!value || json_is_null(value))
        return true;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > INT_MAX)
        return false;
    *ret = (int)number;
    return true;
}

static enum err read_numbers(const json_t *json, struct outcome *o, struct why *why)
{
    if (!read_int(json, "http_status", &o->http_status) || !read_int(json, "attempt", &o->attempt))
        return why_set(why, ERR_REFUSE, "outcome: http_status and attempt must be numbers");
    o->pr_number = json_integer_value(json_object_get(json, "pr_number"));
    o->latency_ms = json_integer_value(json_object_get(json, "latency_ms"));
    o->received_ms = json_integer_value(json_object_get(json, "received_ms"));
    o->next_ms = json_integer_value(json_object_get(json, "next_ms"));
    const json_t *mark = json_object_get(json, "maybe_duplicate");
    o->maybe_duplicate =
        json_is_true(mark) ? MARK_ANSWER_UNSEEN : task_mark_parse(str_of(json_string_value(mark)));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    for (size_t i = 1; reason && i < REASON_NAMES; i++)
        if (strcmp(reason, reason_names[i]) == 0)
            o->reason = (enum outcome_reason)i;
    const char *tier = json_string_value(json_object_get(json, "tier"));
    o->level = level_parse(str_of(tier));
    if (!o->level)
        return why_set(why, ERR_REFUSE, "outcome: tier must be L1, L2, L3 or L4");
    const char *at = json_string_value(json_object_get(json, "at"));
    if (!at)
        return why_set(why, ERR_REFUSE, "outcome: at is missing");
    enum err err = clock_parse(str_of(at), &o->at_ms, why);
    return err ? why_prefix(why, err, "outcome: at") : OK;
}

static enum err read_outcome(const json_t *json, struct outcome *o, struct why *why)
{
    const char *name = json_string_value(json_object_get(json, "outcome"));
    for (size_t i = 0; name && i < OUTCOME_NAMES; i++)
        if (strcmp(name, outcome_names[i]) == 0) {
            o->outcome = (enum outcome_kind)i;
            return OK;
        }
    return why_set(why, ERR_REFUSE,
                   "outcome: must be dispatched, unknown, waiting, failed, superseded, skipped or "
                   "duplicate");
}

enum err outcome_from_json(struct str json, struct outcome *ret, struct why *why)
{
    json_error_t fault;
    json_auto_t *root =
        json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &fault);
    if (!root)
        return why_set(why, ERR_REFUSE, "outcome: not JSON: %s", fault.text);
    struct outcome o = { 0 };
    enum err err = read_texts(root, &o, why);
    if (!err)
        err = read_numbers(root, &o, why);
    if (!err)
        err = read_outcome(root, &o, why);
    if (!err)
        *ret = o;
    return err;
}

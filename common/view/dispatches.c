#include "dispatches.h"

#include <stdlib.h>

#include "../base/mem.h"
#include "indexes.h"
#include "keys.h"

extern const char view_fold_dispatch_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_dispatch_lua };

/* Which of two outcomes of one dispatch stays, whatever their order. A call that went through is
 * never hidden by what was tried before or after it; what could still change weighs least. A
 * duplicate is of a call that went through, and may be the first that is heard of it. */
static const struct {
    char weight[2];
    const char *sent_field; /* the call went out, or may have */
} outcomes[] = {
    [OUTCOME_DISPATCHED] = { "7", "dispatched_ms" },
    [OUTCOME_DUPLICATE] = { "6", "dispatched_ms" },
    [OUTCOME_FAILED] = { "5", "" },
    [OUTCOME_UNKNOWN] = { "4", "unknown_ms" },
    [OUTCOME_SUPERSEDED] = { "3", "" },
    [OUTCOME_SKIPPED] = { "2", "" },
    [OUTCOME_WAITING] = { "1", "" },
};

/* What the aggregate check run of a commit may be about. A record of before the action was stored
 * says nothing about a pull request that was closed, so it does not count. */
static bool is_summed_up(const struct outcome *o)
{
    struct str type = str_of(o->event_type), action = str_of(o->action);
    if (o->level < 3 || o->pr_number <= 0 || !o->head_sha[0])
        return false;
    if (str_is(type, event_kind_name(EVENT_PULL_REQUEST)))
        return action.len > 0 && !str_is(action, "closed");
    return str_is(type, event_kind_name(EVENT_PUSH)); /* with a pull request: a ciflow tag */
}

enum err dispatch_fold_queue(struct redis *r, const struct outcome *o,
                             const struct view_times *times, struct why *why)
{
    int64_t came_ms = o->received_ms > 0 ? o->received_ms : o->at_ms;
    struct str id = str_of(o->delivery_id), repo = str_of(o->repo);
    struct str came = STR_NUMBER(came_ms);
    enum outcome_kind shown = o->outcome == OUTCOME_DUPLICATE ? OUTCOME_DISPATCHED : o->outcome;
    struct str at = STR_NUMBER(o->at_ms), key = key_dispatch(NEW_KEY, id, repo);
    const struct str argv[] = {
        key,
        key_delivery(NEW_KEY, id),
        STR_LIT(KEY_REPOS),
        o->pr_number > 0 ? key_pr(NEW_KEY, o->pr_number) : key,
        is_summed_up(o) ? key_sent(NEW_KEY, str_of(o->head_sha), repo) : key,
        times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH),
        key_ids(NEW_KEY, came_ms / KEY_DAY_MS),
        str_of(outcomes[o->outcome].weight),
        at,
        str_of(outcomes[o->outcome].sent_field),
        STR_NUMBER(times->ttl_s),
        id,
        repo,
        came,
        times->fence ? STR_NUMBER(times->fence) : STR_LIT(""),
        STR_LIT("delivery"),
        id,
        STR_LIT("outcome"),
        str_of(outcome_kind_name(shown)),
        STR_LIT("repo"),
        repo,
        STR_LIT("event_type"),
        str_of(o->event_type),
        STR_LIT("action"),
        str_of(o->action),
        STR_LIT("head_sha"),
        str_of(o->head_sha),
        STR_LIT("error"),
        str_of(o->error),
        STR_LIT("level"),
        STR_NUMBER(o->level),
        STR_LIT("pr"),
        STR_NUMBER(o->pr_number),
        STR_LIT("http_status"),
        STR_NUMBER(o->http_status),
        STR_LIT("attempt"),
        STR_NUMBER(o->attempt),
        STR_LIT("at_ms"),
        at,
        STR_LIT("received_ms"),
        STR_NUMBER(o->received_ms > 0 ? o->received_ms : 0),
        STR_LIT("maybe_duplicate"),
        str_of(task_mark_name(o->maybe_duplicate)),
        STR_LIT("next_ms"), /* the last: few have it */
        STR_NUMBER(o->next_ms),
    };
    size_t argc = sizeof(argv) / sizeof(argv[0]) - (o->next_ms > 0 ? 0 : 2);
    return redis_queue_script(r, &fold_script, 7, argc, argv, why);
}

/* ---- reading -------------------------------------------------------------------------------- */

enum field_type { TEXT, NUMBER };
#define FIELD(member, type)                                                                        \
    {                                                                                              \
#member, type, offsetof(struct dispatch_view, member),                                     \
            sizeof(((struct dispatch_view *)0)->member)                                            \
    }
static const struct field {
    const char *name;
    enum field_type type;
    size_t offset, size;
} fields[] = {
    FIELD(delivery, TEXT),      FIELD(outcome, TEXT),  FIELD(repo, TEXT),
    FIELD(event_type, TEXT),    FIELD(head_sha, TEXT), FIELD(error, TEXT),
    FIELD(level, NUMBER),       FIELD(pr, NUMBER),     FIELD(http_status, NUMBER),
    FIELD(attempt, NUMBER),     FIELD(at_ms, NUMBER),  FIELD(dispatched_ms, NUMBER),
    FIELD(received_ms, NUMBER), FIELD(action, TEXT),   FIELD(next_ms, NUMBER),
};

/* False when there is no such hash. */
static bool view_from_reply(const struct redis_value *reply, struct dispatch_view *view)
{
    int64_t unknown_ms = 0;
    *view = (struct dispatch_view){ 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2) {
        struct str name = reply->items[i].text, value = reply->items[i + 1].text;
        for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
            void *to = (char *)view + fields[f].offset;
            if (!str_is(name, fields[f].name))
                continue;
            if (fields[f].type == TEXT)
                str_copy(to, fields[f].size, value);
            else if (!str_to_i64(value, to))
                *(int64_t *)to = 0;
        }
        if (str_is(name, "unknown_ms") && !str_to_i64(value, &unknown_ms))
            unknown_ms = 0;
        if (str_is(name, "maybe_duplicate"))
            view->maybe_duplicate =
                str_is(value, "0") ? MARK_NONE : task_mark_parse(value); /* older: "0", "1" */
    }
    if (!view->dispatched_ms)
        view->dispatched_ms = unknown_ms;
    if (!dispatch_is_open(view)) /* of an earlier try */
        view->next_ms = 0;
    return view->outcome[0] != '\0';
}

enum err dispatch_view_get(struct redis *r, struct str delivery, struct str repo, bool *found,
                           struct dispatch_view *ret, struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(
        r, &reply, REDIS_ARGS(STR_LIT("HGETALL"), key_dispatch(NEW_KEY, delivery, repo)), why);
    if (err)
        return err;
    struct dispatch_view view;
    *found = view_from_reply(reply, &view);
    if (*found)
        *ret = view;
    return OK;
}

enum err dispatches_of_delivery(struct redis *r, struct str delivery, size_t limit,
                                struct dispatch_view **ret, size_t *n, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) repos = { NULL, 0 };
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *reply;
    size_t kept = 0;
    enum err err = redis_call(
        r, &reply,
        REDIS_ARGS(STR_LIT("ZRANGE"), key_delivery(NEW_KEY, delivery), STR_LIT("0"), STR_LIT("-1")),
        why);
    if (err)
        return err;
    for (size_t i = 0; i < reply->n && repos.n < limit; i++)
        if (!is_job_key(reply->items[i].text)) /* the jobs are in the same set */
            view_index_add(&repos, reply->items[i].text, 0);
    for (size_t i = 0; i < repos.n; i++)
        redis_batch_put(&batch,
                        REDIS_ARGS(STR_LIT("HGETALL"),
                                   key_dispatch(NEW_KEY, delivery, str_of(repos.at[i].name))));
    struct dispatch_view *list = mem_alloc(repos.n + 1, sizeof(*list));
    while ((reply = redis_batch_next(&batch)))
        kept += view_from_reply(reply, &list[kept]);
    if (batch.err) {
        free(list);
        return batch.err;
    }
    *ret = list;
    *n = kept;
    return OK;
}

static bool has_outcome(const struct dispatch_view *d, enum outcome_kind kind)
{
    return str_is(str_of(d->outcome), outcome_kind_name(kind));
}

bool dispatch_is_open(const struct dispatch_view *d)
{
    return has_outcome(d, OUTCOME_WAITING) || has_outcome(d, OUTCOME_UNKNOWN);
}

bool dispatch_was_dropped(const struct dispatch_view *d)
{
    return has_outcome(d, OUTCOME_SUPERSEDED) || has_outcome(d, OUTCOME_SKIPPED);
}

int64_t dispatch_report_due_ms(const struct dispatch_view *d, int64_t silent_ms)
{
    if (d->level < 2 || str_is(str_of(d->action), "closed") || has_outcome(d, OUTCOME_FAILED) ||
        dispatch_was_dropped(d))
        return 0;
    return (d->dispatched_ms > 0 ? d->dispatched_ms : d->at_ms) + silent_ms;
}

bool dispatch_never_reported(const struct dispatch_view *d, size_t jobs, int64_t silent_ms,
                             int64_t now_ms)
{
    int64_t due_ms = dispatch_report_due_ms(d, silent_ms);
    return jobs == 0 && due_ms > 0 && now_ms >= due_ms;
}

/* ---- the one that a commit's aggregate check run is about ------------------------------------ */

#define SENT_MAX 20 /* as fold_dispatch.lua keeps */

enum err dispatch_of_head(struct redis *r, struct str sha, struct str repo, bool *found,
                          struct dispatch_view *ret, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    *found = false;
    enum err err = index_newest(r, key_sent(NEW_KEY, sha, repo), SENT_MAX, &deliveries, why);
    for (size_t i = 0; !err && i < deliveries.n; i++) {
        struct str delivery = str_of(deliveries.at[i].name);
        struct dispatch_view view;
        bool there = false;
        err = dispatch_view_get(r, delivery, repo, &there, &view, why);
        if (err || !there)
            continue;
        str_copy(view.delivery, sizeof(view.delivery), delivery);
        bool superseded = str_is(str_of(view.outcome), outcome_kind_name(OUTCOME_SUPERSEDED));
        if (!*found || !superseded)
            *ret = view;
        *found = true;
        if (!superseded)
            break;
    }
    return err;
}

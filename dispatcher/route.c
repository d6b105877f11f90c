#include "route.h"

#include <stdlib.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"

#define CHECK_PREFIX "crcr/"

void routes_add(struct routes *r, struct route route)
{
    if ((r->n & (r->n - 1)) == 0) /* full at each power of two */
        r->at = mem_resize(r->at, r->n ? 2 * r->n : 1, sizeof(*r->at));
    r->at[r->n++] = route;
}

/* pull_request and push: every downstream but those that only report nightly runs. */
static void fan_out(const struct route_input *in, const char *skipped, struct routes *ret)
{
    for (size_t i = 0; i < allowlist_size(in->list); i++) {
        const struct allowlist_entry *entry = allowlist_at(in->list, i);
        if (entry->pull_request)
            routes_add(ret, (struct route){ .repo = entry->repo,
                                            .level = entry->level,
                                            .kind = TASK_DISPATCH,
                                            .skipped = skipped });
    }
    if (!ret->n)
        ret->nothing = "the allowlist has no downstream that takes pull requests";
}

/* "crcr/<owner>/<repo>/…" or, for the aggregate check, without the rest. */
static bool check_repo(struct str name, struct str *repo, bool *aggregate)
{
    struct str part;
    if (!str_starts(name, CHECK_PREFIX))
        return false;
    struct str rest = str_from(name, sizeof(CHECK_PREFIX) - 1);
    repo->ptr = rest.ptr;
    if (!str_split(&rest, '/', &part) || !str_split(&rest, '/', &part))
        return false;
    repo->len = (size_t)(part.ptr + part.len - repo->ptr);
    *aggregate = rest.len == 0;
    return repo_valid(*repo);
}

bool route_aggregate_id(struct str external_id, struct str *delivery, int64_t *pr)
{
    struct str part;
    if (!str_split(&external_id, ':', &part) || !str_is(part, "d"))
        return false;
    return str_split(&external_id, ':', delivery) && delivery_valid(*delivery) &&
           str_to_i64(external_id, pr) && *pr > 0;
}

/* What to repeat: the run of a job, the delivery of an aggregate. False: the check names none. */
static bool check_target(struct route *to, bool aggregate, struct str external_id)
{
    struct str delivery;
    int64_t pr;
    uint64_t number;
    if (aggregate) {
        to->kind = TASK_EXPAND;
        to->run_id = external_id;
        return route_aggregate_id(external_id, &delivery, &pr);
    }
    to->kind = TASK_RERUN_FAILED;
    if (!str_split(&external_id, ':', &to->run_id)) /* <run_id>[:<pr>] */
        to->run_id = STR_LIT("");
    return str_to_u64(to->run_id, &number) && number > 0;
}

bool route_is_old(const struct event *event, int64_t now_ms, int64_t max_age_ms)
{
    return !event->again.len && now_ms - event->received_ms > max_age_ms;
}

/* A name alone can be faked by any other App, so the App that made the check run decides. */
const char *route_check(const struct route_input *in, const struct check_asked *check,
                        struct route *ret)
{
    struct str repo;
    bool aggregate;
    if (!in->app_id || check->app_id != in->app_id)
        return "the check run is not ours";
    if (!check_repo(check->name, &repo, &aggregate))
        return "the check run's name is none that we give";
    const struct allowlist_entry *entry = allowlist_find(in->list, repo);
    if (!entry) /* there is no tier to report an outcome of */
        return ROUTE_NOT_LISTED;
    *ret = (struct route){ .repo = entry->repo, .level = entry->level };
    if (!check_target(ret, aggregate, check->external_id))
        ret->skipped = aggregate ? "the aggregate check names no delivery" : ROUTE_OTHER_CI;
    if (route_is_old(in->event, in->now_ms, in->max_age_ms))
        ret->skipped = ROUTE_TOO_OLD;
    if (entry->level < ROUTE_RERUN_LEVEL)
        ret->skipped = ROUTE_NO_RERUNS;
    return NULL;
}

/* Which check runs it holds is asked of GitHub by the sender of L4: the suite may hold any tier's.
 */
static void rerun_suite(const struct route_input *in, const char *old, struct routes *ret)
{
    struct route to = { .repo = str_of(in->facts->repo), .level = 4, .kind = TASK_EXPAND };
    if (!in->app_id || in->facts->app_id != in->app_id) {
        ret->nothing = "the check suite is not ours";
        return;
    }
    if (!to.repo.len) {
        ret->nothing = "the event names no repository";
        return;
    }
    to.skipped = old;
    to.run_id = str_number(ret->suite, in->facts->check_suite_id);
    routes_add(ret, to);
}

bool route_takes_payload(enum task_kind kind)
{
    return kind == TASK_DISPATCH || kind == TASK_EXPAND;
}

struct task route_task(const struct route *to, const struct task *of)
{
    return (struct task){
        .event = of->event,
        .repo = to->repo,
        .level = to->level,
        .kind = to->kind,
        .run_id = to->run_id,
        .attempt = 1,
        .seq = of->seq,
        .payload_trimmed = route_takes_payload(to->kind) ? of->payload_trimmed : STR_NONE,
        .event_key = of->event_key,
    };
}

bool route_is_suite(const struct task *task)
{
    uint64_t number;
    return task->kind == TASK_EXPAND && str_to_u64(task->run_id, &number);
}

void route(const struct route_input *in, struct routes *ret)
{
    const struct event *event = in->event;
    const struct event_facts *facts = in->facts;
    const char *old = route_is_old(event, in->now_ms, in->max_age_ms) ? ROUTE_TOO_OLD : NULL;
    const struct check_asked check = {
        .app_id = facts->app_id,
        .name = str_of(facts->check_name),
        .external_id = str_of(facts->external_id),
    };
    struct route to;
    *ret = (struct routes){ 0 };
    switch (event->kind) {
    case EVENT_PULL_REQUEST:
        if (str_is(event->action, "labeled") || str_is(event->action, "unlabeled"))
            ret->nothing = "labels are facts for the reporter";
        else
            fan_out(in, old, ret);
        break;
    case EVENT_PUSH:
        if (facts->deleted)
            ret->nothing = "the ref was deleted";
        else
            fan_out(in, old, ret);
        break;
    case EVENT_CHECK_RUN:
        ret->nothing = route_check(in, &check, &to);
        if (!ret->nothing)
            routes_add(ret, to);
        break;
    case EVENT_CHECK_SUITE:
        rerun_suite(in, old, ret);
        break;
    default:
        ret->nothing = "events of this kind are not dispatched";
    }
}

void routes_clear(struct routes *r)
{
    free(r->at);
    *r = (struct routes){ 0 };
}

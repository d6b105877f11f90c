#include "route.h"

#include <stdlib.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"

#define CHECK_PREFIX "crcr/"

static const char too_old[] = "the event is older than CRCR_MAX_EVENT_AGE";
static const char not_listed[] = "the repository is not in the allowlist";

static void add(struct routes *r, struct route route)
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
            add(ret, (struct route){ .repo = entry->repo,
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

static const char *judge_rerun(const struct route_input *in, const struct allowlist_entry *entry,
                               bool aggregate, struct str run_id)
{
    uint64_t number;
    if (entry->level < 3)
        return "re-runs are for levels 3 and 4";
    if (aggregate)
        return "the aggregate check is not re-run";
    if (!str_to_u64(run_id, &number) || number == 0)
        return "the check run names no GitHub Actions run";
    if (in->now_ms - in->event->received_ms > in->max_age_ms)
        return too_old;
    return NULL;
}

/* A name alone can be faked by any other App, so the App that made the check run decides. */
static void rerun(const struct route_input *in, struct routes *ret)
{
    struct route route = { .kind = TASK_RERUN_FAILED };
    struct str external_id = str_of(in->facts->external_id);
    bool aggregate;
    if (!in->app_id || in->facts->app_id != in->app_id) {
        ret->nothing = "the check run is not ours";
        return;
    }
    if (!check_repo(str_of(in->facts->check_name), &route.repo, &aggregate)) {
        ret->nothing = "the check run's name is none that we give";
        return;
    }
    const struct allowlist_entry *entry = allowlist_find(in->list, route.repo);
    if (!entry) { /* there is no tier to tell an outcome of */
        ret->nothing = not_listed;
        return;
    }
    route.repo = entry->repo;
    route.level = entry->level;
    if (!str_split(&external_id, ':', &route.run_id)) /* <run_id>[:<pr>] */
        route.run_id = STR_LIT("");
    route.skipped = judge_rerun(in, entry, aggregate, route.run_id);
    add(ret, route);
}

static bool is_label_fact(struct str action)
{
    return str_is(action, "labeled") || str_is(action, "unlabeled");
}

void route(const struct route_input *in, struct routes *ret)
{
    const struct event *event = in->event;
    bool old = in->now_ms - event->received_ms > in->max_age_ms;
    *ret = (struct routes){ 0 };
    switch (event->kind) {
    case EVENT_PULL_REQUEST:
        if (is_label_fact(event->action))
            ret->nothing = "labels are facts for the reporter";
        else
            fan_out(in, old ? too_old : NULL, ret);
        break;
    case EVENT_PUSH:
        if (in->facts->deleted)
            ret->nothing = "the ref was deleted";
        else
            fan_out(in, old ? too_old : NULL, ret);
        break;
    case EVENT_CHECK_RUN:
        rerun(in, ret);
        break;
    case EVENT_CHECK_SUITE:
        ret->nothing = "re-runs of a whole check suite are not supported";
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

const char *route_unwanted(const struct task *task, const struct allowlist *list, int64_t now_ms,
                           int64_t max_age_ms)
{
    const struct allowlist_entry *entry = list ? allowlist_find(list, task->repo) : NULL;
    if (now_ms - task->event.received_ms > max_age_ms)
        return too_old;
    if (!list)
        return NULL;
    if (!entry)
        return not_listed;
    if (task->kind == TASK_DISPATCH)
        return entry->pull_request ? NULL : "the repository takes nightly runs only";
    return entry->level >= 3 ? NULL : "re-runs are for levels 3 and 4";
}

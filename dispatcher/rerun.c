#include "rerun.h"

#include "../common/model/ids.h"

#define CHECK_PREFIX "crcr/"

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

bool rerun_aggregate_id(struct str external_id, struct str *delivery, int64_t *pr)
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
        return rerun_aggregate_id(external_id, &delivery, &pr);
    }
    to->kind = TASK_RERUN_FAILED;
    if (!str_split(&external_id, ':', &to->run_id)) /* <run_id>[:<pr>] */
        to->run_id = STR_LIT("");
    return str_to_u64(to->run_id, &number) && number > 0;
}

/* A name alone can be faked by any other App, so the App that made the check run decides. */
const char *rerun_check(const struct route_input *in, const struct check_asked *check,
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
    if (entry->level < RERUN_LEVEL)
        ret->skipped = ROUTE_NO_RERUNS;
    return NULL;
}

/* Which check runs it holds is asked of GitHub by the sender of L4: the suite may hold any tier's.
 */
void rerun_suite(const struct route_input *in, struct routes *ret)
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
    if (route_is_old(in->event, in->now_ms, in->max_age_ms))
        to.skipped = ROUTE_TOO_OLD;
    to.run_id = str_number(ret->suite, in->facts->check_suite_id);
    routes_add(ret, to);
}

bool rerun_is_suite(const struct task *task)
{
    uint64_t number;
    return task->kind == TASK_EXPAND && str_to_u64(task->run_id, &number);
}

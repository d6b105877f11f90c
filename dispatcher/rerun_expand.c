#include "rerun_expand.h"

#include <string.h>

#include "../common/model/ids.h"

/* ---- a check suite ---- */

/* Both would become the same call, or the same outcome of a downstream. */
static bool same(const struct route *a, const struct route *b)
{
    if (a->kind != b->kind || !str_eq(a->repo, b->repo))
        return false;
    if (a->skipped || b->skipped)
        return a->skipped == b->skipped;
    return a->kind == TASK_EXPAND || str_eq(a->run_id, b->run_id);
}

static bool has_same(const struct routes *r, const struct route *route)
{
    for (size_t i = 0; i < r->n; i++)
        if (same(&r->at[i], route))
            return true;
    return false;
}

static bool has_rerun(const struct routes *r, struct str repo)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i].kind == TASK_RERUN_ALL && !r->at[i].skipped && str_eq(r->at[i].repo, repo))
            return true;
    return false;
}

void expand_suite(const struct route_input *in, const struct check_asked *checks, size_t n,
                  struct routes *ret)
{
    struct route route;
    *ret = (struct routes){ .nothing = "the check suite holds no check run" };
    for (size_t i = 0; i < n; i++) {
        const char *nothing = rerun_check(in, &checks[i], &route);
        if (!nothing && route.kind == TASK_RERUN_FAILED) /* "Re-run all checks" */
            route.kind = TASK_RERUN_ALL;
        if (nothing)
            ret->nothing = nothing;
        else if (!has_same(ret, &route))
            routes_add(ret, route);
    }
    if (ret->n)
        ret->nothing = NULL;
}

void expand_drop_aggregates(struct routes *routes)
{
    size_t kept = 0;
    for (size_t i = 0; i < routes->n; i++)
        if (routes->at[i].kind != TASK_EXPAND || !has_rerun(routes, routes->at[i].repo))
            routes->at[kept++] = routes->at[i];
    routes->n = kept;
}

/* ---- an aggregate check ---- */

static bool belongs(const struct expand_aggregate *of, const struct result_record *job)
{
    bool reports_itself = job->event_type && (strcmp(job->event_type, "nightly") == 0 ||
                                              strcmp(job->event_type, "periodic") == 0);
    return job->pr_number == of->pr && job->run_id && job->workflow_name && !reports_itself &&
           !str_eq(str_of(job->delivery_id), of->delivery);
}

/* GitHub Actions numbers its runs, upwards. 0: it is another CI's, which may count its own. */
static uint64_t run_number(const struct result_record *job)
{
    uint64_t number;
    if (result_record_is_of_other_ci(job))
        return 0;
    return str_to_u64(str_of(job->run_id), &number) ? number : 0;
}

/* True for the first row of the newest run of its workflow. */
static bool is_newest(const struct expand_aggregate *of, const struct result_record *jobs, size_t n,
                      size_t at)
{
    uint64_t number = run_number(&jobs[at]);
    for (size_t i = 0; i < n; i++) {
        uint64_t other = run_number(&jobs[i]);
        if (i == at || !belongs(of, &jobs[i]) ||
            strcmp(jobs[i].workflow_name, jobs[at].workflow_name) != 0)
            continue;
        if (other > number || (other == number && i < at))
            return false;
    }
    return true;
}

void expand_aggregate(const struct expand_aggregate *of, const struct result_record *jobs, size_t n,
                      struct routes *ret)
{
    *ret = (struct routes){ .nothing = "no run is known" };
    for (size_t i = 0; i < n; i++) {
        if (!belongs(of, &jobs[i]))
            continue;
        if (!run_number(&jobs[i])) {
            routes_clear(ret);
            ret->nothing = "a run is not GitHub Actions'";
            return;
        }
        const struct route route = { .repo = of->repo,
                                     .level = of->level,
                                     .kind = TASK_RERUN_ALL,
                                     .run_id = str_of(jobs[i].run_id) };
        if (is_newest(of, jobs, n, i) && !has_same(ret, &route))
            routes_add(ret, route);
    }
    if (ret->n)
        ret->nothing = NULL;
}

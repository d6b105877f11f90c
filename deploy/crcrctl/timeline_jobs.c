#include "timeline_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../common/base/mem.h"

/* ---- which count ---------------------------------------------------------------------------- */

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Runs that are numbers come first, the newest before the others. */
static int compare_runs(const struct summary *a, const struct summary *b)
{
    uint64_t x, y;
    bool is_x = str_to_u64(str_of(a->run_id), &x), is_y = str_to_u64(str_of(b->run_id), &y);

    if (is_x != is_y)
        return is_x ? -1 : 1;
    if (is_x && x != y)
        return x > y ? -1 : 1;
    return strcmp(a->run_id, b->run_id);
}

/* By downstream and job; then what counts comes first. */
static int compare(const void *left, const void *right)
{
    const struct summary *a = *(const struct summary *const *)left;
    const struct summary *b = *(const struct summary *const *)right;
    int order = strcasecmp(a->repo, b->repo);

    if (!order)
        order = strcmp(a->job, b->job);
    if (!order)
        order = compare_runs(a, b);
    if (!order)
        order = order_of(b->attempt, a->attempt);
    if (!order)
        order = strcmp(a->check_run_id, b->check_run_id);
    if (!order)
        order = order_of(b->job_state, a->job_state);
    return order ? order : order_of(a->at_ms, b->at_ms);
}

/* Whether b says nothing that counts beside a, which comes before it in the order above. A run id
 * that is no number has no order: its jobs stand beside those of other runs. */
static bool is_replaced(const struct summary *a, const struct summary *b)
{
    uint64_t number;

    if (strcasecmp(a->repo, b->repo) != 0 || strcmp(a->job, b->job) != 0)
        return false;
    if (strcmp(a->run_id, b->run_id) != 0)
        return str_to_u64(str_of(b->run_id), &number);
    return a->attempt != b->attempt || strcmp(a->check_run_id, b->check_run_id) == 0;
}

size_t timeline_jobs(const struct timeline *t, size_t first, size_t end,
                     const struct summary ***ret)
{
    const struct summary **all = mem_alloc(end - first + 1, sizeof(*all));
    size_t n = 0, kept = 0;

    for (size_t i = first; i < end; i++)
        if (t->steps[i].job_state != JOB_NONE && *t->steps[i].repo)
            all[n++] = &t->steps[i];
    qsort(all, n, sizeof(*all), compare);
    for (size_t i = 0; i < n; i++)
        if (!kept || !is_replaced(all[kept - 1], all[i]))
            all[kept++] = all[i];
    *ret = all;
    return kept;
}

/* ---- what they come to ---------------------------------------------------------------------- */

enum sort { FAILED, OPEN, SUCCEEDED, NEITHER };

/* Worst first, as in the aggregate check run, and what is open between bad and good. */
static const struct {
    const char *outcome;
    enum sort sort;
} outcomes[] = {
    { "failure", FAILED },         { "timed_out", FAILED }, { "cancelled", FAILED },
    { "action_required", FAILED }, { "in_progress", OPEN }, { "success", SUCCEEDED },
    { "stale", NEITHER },          { "neutral", NEITHER },  { "skipped", NEITHER },
    { "completed", NEITHER },
};
#define N_OUTCOMES (sizeof(outcomes) / sizeof(*outcomes))

/* One that nobody has heard of weighs as a failure. */
static size_t weight_of(const struct summary *job)
{
    for (size_t i = 0; i < N_OUTCOMES; i++)
        if (str_is(str_of(job->outcome), outcomes[i].outcome))
            return i;
    return 0;
}

static enum sort sort_of(const struct summary *job)
{
    return outcomes[weight_of(job)].sort;
}

/* False when it does not fit: then the list ends in "…". */
static bool put_name(struct timeline_jobs_sum *to, const char *name)
{
    size_t used = strlen(to->names), left = sizeof(to->names) - used;
    bool fits = strlen(name) + sizeof(", ") + sizeof(", …") <= left;

    snprintf(to->names + used, left, "%s%s", used ? ", " : "", fits ? name : "…");
    return fits;
}

void timeline_jobs_sum(struct timeline_jobs_sum *ret, const struct summary *const *jobs, size_t n)
{
    bool fits = true;

    *ret = (struct timeline_jobs_sum){ .worst = jobs[0] };
    for (size_t i = 0; i < n; i++) {
        enum sort sort = sort_of(jobs[i]);
        if (weight_of(jobs[i]) < weight_of(ret->worst))
            ret->worst = jobs[i];
        ret->n_failed += sort == FAILED;
        ret->n_open += sort == OPEN;
        ret->n_succeeded += sort == SUCCEEDED;
        if (sort == OPEN && (!ret->open_since_ms || jobs[i]->at_ms < ret->open_since_ms))
            ret->open_since_ms = jobs[i]->at_ms;
    }
    for (size_t i = 0; fits && i < n && sort_of(ret->worst) <= OPEN; i++)
        if (sort_of(jobs[i]) == sort_of(ret->worst))
            fits = put_name(ret, jobs[i]->job);
}

#include "score.h"

#include <string.h>

#include "../aggregate.h"

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Attempts are numbers almost everywhere; where they are not, none replaces another. */
static bool is_later(const struct result_record *a, const struct result_record *b)
{
    uint64_t one, other;
    if (!str_to_u64(str_of(a->run_attempt), &one) || !str_to_u64(str_of(b->run_attempt), &other))
        return false;
    return one > other;
}

static bool is_replaced(const struct result_record *job, const struct result_record *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(str_of(jobs[i].repo), str_of(job->repo)) &&
            same(jobs[i].run_id, job->run_id) && same(jobs[i].job_name, job->job_name) &&
            same(jobs[i].workflow_name, job->workflow_name) && is_later(&jobs[i], job))
            return true;
    return false;
}

static bool has_ended(const struct result_record *job)
{
    return job->state == JOB_COMPLETED || job->state == JOB_TIMED_OUT;
}

static void add(struct jobs_score *to, const struct result_record *job)
{
    to->jobs++;
    to->running += !has_ended(job);
    to->failed += has_ended(job) && conclusion_is_bad(job_conclusion(job));
    if (!to->worst || job_rank(job) < job_rank(to->worst))
        to->worst = job;
}

struct jobs_score score_of_newest_run(const struct result_record *jobs, size_t n)
{
    struct jobs_score score = { NULL, 0, 0, 0 };
    for (size_t i = 0; i < n; i++)
        if (same(jobs[i].run_id, jobs[0].run_id) && !is_replaced(&jobs[i], jobs, n))
            add(&score, &jobs[i]);
    return score;
}

struct jobs_score score_of_downstream(const struct result_record *jobs, size_t n, struct str repo)
{
    struct jobs_score score = { NULL, 0, 0, 0 };
    for (size_t i = 0; i < n; i++)
        if ((!repo.ptr || str_eq_nocase(str_of(jobs[i].repo), repo)) &&
            !is_replaced(&jobs[i], jobs, n))
            add(&score, &jobs[i]);
    return score;
}

#include "score.h"

#include <string.h>

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
        if (same(jobs[i].run_id, job->run_id) && same(jobs[i].job_name, job->job_name) &&
            same(jobs[i].workflow_name, job->workflow_name) && is_later(&jobs[i], job))
            return true;
    return false;
}

struct score score_of(const struct result_record *jobs, size_t n)
{
    struct score score = { .queue_mean_ms = -1 };
    int64_t queue_ms = 0, queued = 0;
    for (size_t i = 0; i < n; i++) {
        const struct result_record *job = &jobs[i];
        if (is_replaced(job, jobs, n))
            continue;
        score.jobs++;
        if (job->queue_ms >= 0) {
            queue_ms += job->queue_ms;
            queued++;
        }
        if (job->state != JOB_COMPLETED && job->state != JOB_TIMED_OUT)
            continue;
        score.completed++;
        score.successful += job->state == JOB_COMPLETED && same(job->conclusion, "success");
    }
    if (queued > 0)
        score.queue_mean_ms = queue_ms / queued;
    return score;
}

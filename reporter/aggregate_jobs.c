#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "aggregate_inner.h"

int64_t attempt_number(const char *attempt)
{
    uint64_t number;
    return attempt && str_to_u64(str_of(attempt), &number) && number <= INT32_MAX ? (int64_t)number
                                                                                  : 0;
}

int64_t job_first_ms(const struct result_record *job)
{
    const int64_t clocks[] = { job->in_progress_ms, job->timed_out_ms, job->completed_ms };
    int64_t first = 0;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
        if (clocks[i] > 0 && (first == 0 || clocks[i] < first))
            first = clocks[i];
    return first;
}

int64_t job_last_ms(const struct result_record *job)
{
    const int64_t clocks[] = { job->in_progress_ms, job->timed_out_ms, job->completed_ms };
    int64_t last = 0;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
        if (clocks[i] > last)
            last = clocks[i];
    return last;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Newest first; names come before numbers, as in fold.lua. */
static int attempts_cmp(const char *a, const char *b)
{
    int64_t na = attempt_number(a), nb = attempt_number(b);
    if ((na == 0) != (nb == 0))
        return na == 0 ? -1 : 1;
    if (na != nb)
        return na > nb ? -1 : 1;
    return strcmp(b, a);
}

int jobs_cmp(const void *a, const void *b)
{
    const struct result_record *x = *(const struct result_record *const *)a;
    const struct result_record *y = *(const struct result_record *const *)b;
    int order = strcmp(x->run_id, y->run_id);
    if (order == 0)
        order = strcmp(x->workflow_name, y->workflow_name);
    if (order == 0)
        order = strcmp(x->job_name, y->job_name);
    if (order == 0)
        order = attempts_cmp(x->run_attempt, y->run_attempt);
    return order != 0 ? order : strcmp(x->check_run_id, y->check_run_id);
}

static bool is_same_job(const struct result_record *a, const struct result_record *b)
{
    return strcmp(a->run_id, b->run_id) == 0 && strcmp(a->workflow_name, b->workflow_name) == 0 &&
           strcmp(a->job_name, b->job_name) == 0;
}

/* ---- which count ----------------------------------------------------------------------------- */

static bool is_of(const struct result_record *job, const struct dispatch_view *dispatch)
{
    return job->state != JOB_NONE && job->delivery_id && job->repo && job->run_id &&
           job->workflow_name && job->job_name && job->run_attempt && job->check_run_id &&
           strcmp(job->delivery_id, dispatch->delivery) == 0;
}

/* A matrix may report several jobs of one name in one attempt: all of the newest attempt stay. */
static void newest_attempts(struct aggregate *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_jobs; i++) {
        const struct result_record *job = a->jobs[i];
        bool older = n > 0 && is_same_job(a->jobs[n - 1], job) &&
                     strcmp(a->jobs[n - 1]->run_attempt, job->run_attempt) != 0;
        if (!older)
            a->jobs[n++] = job;
    }
    a->n_jobs = n;
}

/* A run as the replacing of runs sees it. */
struct run_order {
    const char *run_id;
    uint64_t number;  /* of Actions, which counts its runs up; else 0 */
    int64_t first_ms; /* of its earliest job */
};

static bool is_newer(const struct run_order *than, const struct run_order *run)
{
    if (than->number > 0 && run->number > 0)
        return run->number > than->number;
    if (than->first_ms != run->first_ms)
        return run->first_ms > than->first_ms;
    return strcmp(run->run_id, than->run_id) > 0;
}

static void run_order_add(struct run_order *run, const struct result_record *job)
{
    int64_t first = job_first_ms(job);
    uint64_t number = 0;
    bool actions = job->issuer && strcmp(job->issuer, CALLBACK_ISSUER_ACTIONS) == 0;
    if (run->first_ms == 0 || (first > 0 && first < run->first_ms))
        run->first_ms = first;
    if (actions && str_to_u64(str_of(job->run_id), &number))
        run->number = number;
}

static bool is_replaced_by(const struct result_record *job, const struct result_record *other,
                           const struct run_order *run)
{
    if (strcmp(job->workflow_name, other->workflow_name) != 0)
        return false;
    if (job->state != JOB_COMPLETED || strcmp(job_conclusion(job), "cancelled") == 0)
        return true;
    return strcmp(job->job_name, other->job_name) == 0 && run->first_ms > job_last_ms(job);
}

static bool is_replaced(const struct aggregate *a, const struct run_order *runs,
                        const size_t *run_of, size_t i)
{
    for (size_t k = 0; k < a->n_jobs; k++)
        if (run_of[k] != run_of[i] && is_newer(&runs[run_of[i]], &runs[run_of[k]]) &&
            is_replaced_by(a->jobs[i], a->jobs[k], &runs[run_of[k]]))
            return true;
    return false;
}

static void drop_replaced(struct aggregate *a)
{
    struct run_order *runs = mem_alloc(a->n_jobs + 1, sizeof(*runs));
    size_t *run_of = mem_alloc(a->n_jobs + 1, sizeof(*run_of));
    bool *replaced = mem_alloc(a->n_jobs + 1, sizeof(*replaced));
    size_t n_runs = 0, n = 0;
    for (size_t i = 0; i < a->n_jobs; i++) {
        if (n_runs == 0 || strcmp(runs[n_runs - 1].run_id, a->jobs[i]->run_id) != 0)
            runs[n_runs++].run_id = a->jobs[i]->run_id;
        run_of[i] = n_runs - 1;
        run_order_add(&runs[n_runs - 1], a->jobs[i]);
    }
    for (size_t i = 0; n_runs > 1 && i < a->n_jobs; i++)
        replaced[i] = is_replaced(a, runs, run_of, i);
    for (size_t i = 0; i < a->n_jobs; i++)
        if (!replaced[i])
            a->jobs[n++] = a->jobs[i];
    a->n_replaced = a->n_jobs - n;
    a->n_jobs = n;
    free(runs);
    free(run_of);
    free(replaced);
}

void jobs_that_count(const struct aggregate_view *view, struct aggregate *a)
{
    a->jobs = mem_alloc(view->n_jobs + 1, sizeof(*a->jobs));
    for (size_t i = 0; i < view->n_jobs; i++)
        if (is_of(&view->jobs[i], view->dispatch))
            a->jobs[a->n_jobs++] = &view->jobs[i];
    if (a->n_jobs == 0)
        return;
    qsort(a->jobs, a->n_jobs, sizeof(*a->jobs), jobs_cmp);
    newest_attempts(a);
    drop_replaced(a);
}

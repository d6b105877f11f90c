#include "which_jobs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/mem.h"
#include "../base/table.h"
#include "attempt.h"
#include "limits.h"

/* ---- what a job says ------------------------------------------------------------------------- */

static void later(int64_t *ms, int64_t than)
{
    if (than > *ms)
        *ms = than;
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
    int64_t last = 0;
    later(&last, job->in_progress_ms);
    later(&last, job->timed_out_ms);
    later(&last, job->completed_ms);
    return last;
}

const char *job_conclusion(const struct result_record *job)
{
    const char *said = job->state < JOB_TIMED_OUT ? NULL : result_record_conclusion(job);
    bool neutral = job->state >= JOB_TIMED_OUT && (!said || strcmp(said, "stale") == 0);
    return neutral ? "neutral" : said;
}

bool job_has_failed(const struct result_record *job)
{
    const char *conclusion = job_conclusion(job);
    return conclusion && !result_record_is_successful(job) &&
           (strcmp(conclusion, "failure") == 0 || strcmp(conclusion, "timed_out") == 0);
}

/* ---- which jobs count ------------------------------------------------------------------------ */

static int names_cmp(const struct result_record *a, const struct result_record *b)
{
    int order = strcmp(a->run_id, b->run_id);
    if (order == 0)
        order = strcmp(a->workflow_name, b->workflow_name);
    return order != 0 ? order : strcmp(a->job_name, b->job_name);
}

/* What a downstream starts by itself may have a delivery a job. */
static int dispatches_cmp(const struct result_record *a, const struct result_record *b)
{
    bool self = result_record_is_self(a);
    int order = self - result_record_is_self(b);
    if (order == 0 && !self)
        order = strcmp(a->delivery_id, b->delivery_id);
    return order != 0 ? order : strcasecmp(a->repo, b->repo);
}

int jobs_cmp(const void *a, const void *b)
{
    const struct result_record *x = *(const struct result_record *const *)a;
    const struct result_record *y = *(const struct result_record *const *)b;
    int order = dispatches_cmp(x, y);
    if (order == 0)
        order = names_cmp(x, y);
    if (order == 0)
        order = attempt_compare(str_of(y->run_attempt), str_of(x->run_attempt));
    return order != 0 ? order : strcmp(x->check_run_id, y->check_run_id);
}

/* A run as the replacing of runs sees it. */
struct run_order {
    const char *run_id;
    uint64_t number;  /* of Actions, which counts its runs up; else 0 */
    int64_t first_ms; /* of its earliest job */
    size_t from, to;  /* its jobs */
};

/* Of Actions by number, of other CIs by time. Those two do not replace each other (part_of), so
 * which come first is no matter. */
static int newest_first(const void *a, const void *b)
{
    const struct run_order *x = a, *y = b;
    if (x->number != y->number)
        return x->number > y->number ? -1 : 1;
    if (x->first_ms != y->first_ms)
        return x->first_ms > y->first_ms ? -1 : 1;
    return strcmp(y->run_id, x->run_id);
}

#define PART_MAX_BYTES (2 * NAME_MAX_BYTES + 3)

/* What runs have: a workflow of Actions or of another CI, or one job of it. */
static struct str part_of(struct buf *to, const struct result_record *job, bool workflow)
{
    buf_reset(to);
    buf_putc(to, result_record_is_of_actions(job) ? 'a' : 'o');
    buf_puts(to, job->workflow_name);
    buf_putc(to, '\0');
    if (!workflow)
        buf_puts(to, job->job_name);
    buf_putc(to, workflow ? 'w' : 'j');
    return buf_str(to);
}

/* newer: part → when the latest of the newer runs that have it began. */
static bool is_replaced(const struct table *newer, struct buf *key, const struct result_record *job)
{
    bool stopped = job->state != JOB_COMPLETED || strcmp(job_conclusion(job), "cancelled") == 0;
    const int64_t *began_ms = table_get(newer, part_of(key, job, stopped));
    return began_ms && (stopped || *began_ms > job_last_ms(job));
}

/* Dropped is what a newer run of the same workflow has replaced:
 *
 *   - what was cancelled or never ended there: a concurrency group cancels the older of two runs,
 *     which then cannot report;
 *   - a job that had ended before the newer run began and is run by it too: a re-run by a CI that
 *     gives it a new id.
 *
 * Of what a downstream starts by itself each run is for itself. */
size_t jobs_drop_replaced(const struct result_record **jobs, size_t n)
{
    struct run_order *runs = mem_alloc(n + 1, sizeof(*runs));
    bool *replaced = mem_alloc(n + 1, sizeof(*replaced));
    struct table newer = { .size = sizeof(int64_t) };
    struct buf CLEANUP(buf_clear) key = BUF_INIT(PART_MAX_BYTES);
    size_t n_runs = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        const struct result_record *job = jobs[i];
        if (n_runs == 0 || strcmp(runs[n_runs - 1].run_id, job->run_id) != 0)
            runs[n_runs++] = (struct run_order){ .run_id = job->run_id, .from = i };
        struct run_order *run = &runs[n_runs - 1];
        int64_t first_ms = job_first_ms(job);
        uint64_t number;
        if (run->first_ms == 0 || (first_ms > 0 && first_ms < run->first_ms))
            run->first_ms = first_ms;
        if (result_record_is_of_actions(job) && str_to_u64(str_of(job->run_id), &number))
            run->number = number;
        run->to = i + 1;
    }
    if (n_runs > 1)
        qsort(runs, n_runs, sizeof(*runs), newest_first);
    for (const struct run_order *run = runs; n_runs > 1 && run < runs + n_runs; run++) {
        for (size_t i = run->from; i < run->to; i++)
            replaced[i] = !result_record_is_self(jobs[i]) && is_replaced(&newer, &key, jobs[i]);
        for (size_t i = run->from; i < run->to; i++)
            for (int workflow = 0; !result_record_is_self(jobs[i]) && workflow <= 1; workflow++)
                later(table_make(&newer, part_of(&key, jobs[i], workflow)), run->first_ms);
    }
    for (size_t i = 0; i < n; i++)
        if (!replaced[i])
            jobs[left++] = jobs[i];
    table_clear(&newer);
    free(runs);
    free(replaced);
    return left;
}

size_t jobs_drop_attempts(const struct result_record **jobs, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        const struct result_record *job = jobs[i], *last = left > 0 ? jobs[left - 1] : NULL;
        /* a matrix may report several jobs of one name in one attempt: all of the newest stay */
        if (!last || names_cmp(last, job) != 0 || strcmp(last->run_attempt, job->run_attempt) == 0)
            jobs[left++] = job;
    }
    return left;
}

bool job_is_comparable(const struct result_record *job)
{
    return job->state != JOB_NONE && job->delivery_id && job->repo && job->run_id &&
           job->workflow_name && job->job_name && job->run_attempt && job->check_run_id;
}

void jobs_mark_replaced(struct result_record *jobs, size_t n)
{
    const struct result_record **sorted = mem_alloc(n + 1, sizeof(*sorted));
    size_t n_sorted = 0, end;
    for (size_t i = 0; i < n; i++) {
        jobs[i].replaced = job_is_comparable(&jobs[i]);
        if (jobs[i].replaced)
            sorted[n_sorted++] = &jobs[i];
    }
    if (n_sorted > 1)
        qsort(sorted, n_sorted, sizeof(*sorted), jobs_cmp);
    for (size_t at = 0; at < n_sorted; at = end) {
        for (end = at + 1; end < n_sorted && dispatches_cmp(sorted[at], sorted[end]) == 0;)
            end++;
        size_t left = jobs_drop_replaced(sorted + at, jobs_drop_attempts(sorted + at, end - at));
        for (size_t i = at; i < at + left; i++)
            jobs[sorted[i] - jobs].replaced = false;
    }
    free(sorted);
}

#include "aggregate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/base/mem.h"
#include "../common/base/table.h"
#include "../common/model/attempt.h"
#include "../common/model/limits.h"

/* ---- conclusions ----------------------------------------------------------------------------- */

/* Worst first. What a run can also come to is shown as what a check run can say. */
static const struct {
    const char *said, *shown;
    bool bad;
} conclusions_by_weight[] = {
    { "failure", "failure", true },
    { "startup_failure", "failure", true },
    { "timed_out", "timed_out", true },
    { "cancelled", "cancelled", true },
    { "action_required", "action_required", true },
    { "success", "success", false },
    { "stale", "neutral", false },
    { "neutral", "neutral", false },
    { "skipped", "skipped", false },
};
#define N_CONCLUSIONS (sizeof(conclusions_by_weight) / sizeof(conclusions_by_weight[0]))

/* One that nobody has heard of weighs as a failure: never green by mistake. */
static size_t weight_of(const char *conclusion)
{
    for (size_t i = 0; i < N_CONCLUSIONS; i++)
        if (strcmp(conclusion, conclusions_by_weight[i].said) == 0)
            return i;
    return 0;
}

bool conclusion_is_bad(const char *conclusion)
{
    return conclusions_by_weight[weight_of(conclusion)].bad;
}

const char *conclusion_shown(const char *conclusion)
{
    return conclusions_by_weight[weight_of(conclusion)].shown;
}

static const char *worse_of(const char *a, const char *b)
{
    if (!a || !b)
        return a ? a : b;
    return weight_of(a) <= weight_of(b) ? a : b;
}

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

/* By delivery (self-reports: all) and downstream, then by run, workflow, job, newest attempt first.
 * For qsort over pointers to records. */
static int jobs_cmp(const void *a, const void *b)
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

/* Drops what a newer run of the same workflow has replaced from the jobs of one delivery and
 * downstream, in the order of jobs_cmp, and gives how many are left:
 *
 *   - what was cancelled or never ended there: a concurrency group cancels the older of two runs,
 *     which then cannot report;
 *   - a job that had ended before the newer run began and is run by it too: a re-run by a CI that
 *     gives it a new id.
 *
 * Of what a downstream starts by itself each run is for itself. */
static size_t drop_replaced(const struct result_record **jobs, size_t n)
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

/* Drops all but the newest attempt of each job of each run; the same. */
static size_t drop_attempts(const struct result_record **jobs, size_t n)
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

/* It has reported, and what jobs_cmp compares is known. */
static bool is_comparable(const struct result_record *job)
{
    return job->state != JOB_NONE && job->delivery_id && job->repo && job->run_id &&
           job->workflow_name && job->job_name && job->run_attempt && job->check_run_id;
}

/* Fills a->jobs, n_jobs and n_replaced, in the order of jobs_cmp. */
static void jobs_that_count(const struct aggregate_view *view, struct aggregate *a)
{
    size_t n = 0;
    a->jobs = mem_alloc(view->n_jobs + 1, sizeof(*a->jobs));
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *job = &view->jobs[i];
        if (is_comparable(job) && strcmp(job->delivery_id, view->dispatch->delivery) == 0)
            a->jobs[n++] = job;
    }
    if (n > 1)
        qsort(a->jobs, n, sizeof(*a->jobs), jobs_cmp);
    n = drop_attempts(a->jobs, n);
    a->n_jobs = drop_replaced(a->jobs, n);
    a->n_replaced = n - a->n_jobs;
}

void jobs_mark_replaced(struct result_record *jobs, size_t n)
{
    const struct result_record **sorted = mem_alloc(n + 1, sizeof(*sorted));
    size_t n_sorted = 0, end;
    for (size_t i = 0; i < n; i++) {
        jobs[i].replaced = is_comparable(&jobs[i]);
        if (jobs[i].replaced)
            sorted[n_sorted++] = &jobs[i];
    }
    if (n_sorted > 1)
        qsort(sorted, n_sorted, sizeof(*sorted), jobs_cmp);
    for (size_t at = 0; at < n_sorted; at = end) {
        for (end = at + 1; end < n_sorted && dispatches_cmp(sorted[at], sorted[end]) == 0;)
            end++;
        size_t left = drop_replaced(sorted + at, drop_attempts(sorted + at, end - at));
        for (size_t i = at; i < at + left; i++)
            jobs[sorted[i] - jobs].replaced = false;
    }
    free(sorted);
}

/* ---- runs ------------------------------------------------------------------------------------ */

#define ASK_EVERY_MS 60000

/* The next moment to ask about a run whose last job ended at last_ms and which was last asked about
 * at asked_ms: 5, 15 and 30 s after the end, then every 60 s. */
static int64_t next_ask(int64_t last_ms, int64_t asked_ms)
{
    static const int64_t soon[] = { 5000, 15000, 30000 };
    size_t n = sizeof(soon) / sizeof(soon[0]);
    for (size_t i = 0; i < n; i++)
        if (asked_ms < last_ms + soon[i])
            return last_ms + soon[i];
    int64_t from_ms = last_ms + soon[n - 1];
    return from_ms + ((asked_ms - from_ms) / ASK_EVERY_MS + 1) * ASK_EVERY_MS;
}

static void run_end(struct run_sum *run, const char *conclusion)
{
    run->ended = true;
    run->conclusion = worse_of(run->conclusion, conclusion);
}

/* Ended when nothing was heard for so long; else that is when to look. */
static void run_wait_quiet(struct run_sum *run, const struct aggregate_view *view)
{
    if (view->now_ms >= run->last_ms + view->quiet_ms)
        run_end(run, NULL);
    else
        run->look_ms = run->last_ms + view->quiet_ms;
}

/* GitHub knows better than the jobs whether more follows. */
static void run_finish_actions(struct run_sum *run, const struct aggregate_view *view, size_t index)
{
    const struct run_answer *answer = run->answer;
    int64_t silent_ms = run->last_ms + view->silent_ms;
    if (answer && answer->said == RUN_SAID_COMPLETED && answer->attempt >= run->attempt) {
        run->from_github = answer->conclusion[0] ? answer->conclusion : "neutral";
        /* The job that reports makes a success of a run in which there was nothing to do. */
        bool skipped = run->conclusion && strcmp(run->conclusion, "skipped") == 0;
        run_end(run, skipped && !conclusion_is_bad(run->from_github) ? NULL : run->from_github);
        return;
    }
    if (run->busy)
        return;
    run->refused = index >= RUNS_ASKED_MAX ||
                   (answer && answer->said == RUN_SAID_NO && answer->asked_ms >= run->last_ms);
    if (run->refused && run->said_complete)
        run_end(run, NULL);
    else if (run->refused)
        run_wait_quiet(run, view);
    else if (view->now_ms >= silent_ms) /* GitHub will not say, or never ends it */
        run_end(run, "timed_out");
    else {
        int64_t ask_ms = next_ask(run->last_ms, answer ? answer->asked_ms : 0);
        run->ask = view->now_ms >= ask_ms;
        run->look_ms = ask_ms < silent_ms ? ask_ms : silent_ms;
    }
}

static void run_finish_other(struct run_sum *run, const struct aggregate_view *view)
{
    if (run->conclusion && conclusion_is_bad(run->conclusion))
        run_end(run, NULL);
    else if (run->busy)
        return;
    else if (run->said_complete)
        run_end(run, NULL);
    else
        run_wait_quiet(run, view);
}

/* jobs are in the order of their runs. */
static void runs_fill(struct aggregate *a, const struct aggregate_view *view)
{
    a->runs = mem_alloc(a->n_jobs + 1, sizeof(*a->runs));
    for (size_t i = 0; i < a->n_jobs; i++) {
        const struct result_record *job = a->jobs[i];
        const char *conclusion = job_conclusion(job);
        if (a->n_runs == 0 || strcmp(a->runs[a->n_runs - 1].run_id, job->run_id) != 0)
            a->runs[a->n_runs++] =
                (struct run_sum){ .run_id = job->run_id,
                                  .answer = run_answer_find(view->answers, job->run_id) };
        struct run_sum *run = &a->runs[a->n_runs - 1];
        run->actions = run->actions || result_record_is_of_actions(job);
        run->busy = run->busy || !conclusion;
        run->said_complete = run->said_complete || job->run_complete > 0;
        run->conclusion = worse_of(run->conclusion, conclusion);
        later(&run->last_ms, job_last_ms(job));
        later(&run->attempt, attempt_number(str_of(job->run_attempt)));
    }
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].actions)
            run_finish_actions(&a->runs[i], view, i);
        else
            run_finish_other(&a->runs[i], view);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void complete(struct aggregate *a, enum aggregate_cause cause, const char *conclusion,
                     int64_t ended_ms)
{
    a->cause = cause;
    a->status = "completed";
    a->conclusion = conclusion;
    a->ended_ms = ended_ms;
}

/* No job has reported yet: it goes by the dispatch. */
static void by_dispatch(struct aggregate *a, const struct aggregate_view *view)
{
    const struct dispatch_view *d = view->dispatch;
    struct str outcome = str_of(d->outcome);
    int64_t silent_ms = (d->dispatched_ms > 0 ? d->dispatched_ms : d->at_ms) + view->silent_ms;
    bool failed = str_is(outcome, outcome_kind_name(OUTCOME_FAILED));
    bool dropped = str_is(outcome, outcome_kind_name(OUTCOME_SUPERSEDED)) ||
                   str_is(outcome, outcome_kind_name(OUTCOME_SKIPPED));
    a->started = !dropped;
    if (failed)
        complete(a, AGGREGATE_REFUSED, "failure", d->at_ms);
    else if (dropped)
        complete(a, AGGREGATE_DROPPED, "cancelled", d->at_ms);
    else if (view->now_ms >= silent_ms)
        complete(a, AGGREGATE_SILENT, "timed_out", silent_ms);
    else {
        a->cause = str_is(outcome, outcome_kind_name(OUTCOME_WAITING)) ? AGGREGATE_WAITING
                                                                       : AGGREGATE_SENT;
        a->status = "queued";
        a->look_ms = silent_ms;
    }
}

static void by_runs(struct aggregate *a, const struct aggregate_view *view)
{
    bool ended = true, bad_at_once = false, busy = false, actions = false;
    const char *conclusion = NULL;
    int64_t last_ms = 0;
    runs_fill(a, view);
    for (size_t i = 0; i < a->n_runs; i++) {
        const struct run_sum *run = &a->runs[i];
        ended = ended && run->ended;
        busy = busy || (run->busy && !run->ended);
        actions = actions || (run->actions && !run->ended && !run->refused);
        bad_at_once =
            bad_at_once || (!run->actions && run->conclusion && conclusion_is_bad(run->conclusion));
        conclusion = worse_of(conclusion, run->conclusion);
        later(&last_ms, run->last_ms);
        if (run->look_ms > 0 && (a->look_ms == 0 || run->look_ms < a->look_ms))
            a->look_ms = run->look_ms;
    }
    a->started = true;
    a->status = "in_progress";
    a->cause = busy ? AGGREGATE_BUSY : actions ? AGGREGATE_RUN_GOING : AGGREGATE_MAY_FOLLOW;
    if (!ended && !bad_at_once)
        return;
    conclusion = conclusion_shown(conclusion);
    if (view->more_jobs &&
        !conclusion_is_bad(conclusion)) /* what is not looked at may have failed */
        conclusion = "action_required";
    complete(a, AGGREGATE_ENDED, conclusion, last_ms);
}

/* What went wrong, what is in progress, the rest. */
size_t job_rank(const struct result_record *job)
{
    const char *conclusion = job_conclusion(job);
    if (!conclusion)
        return N_CONCLUSIONS;
    return weight_of(conclusion) + (conclusion_is_bad(conclusion) ? 0 : N_CONCLUSIONS + 1);
}

/* Jobs of the same rank stay in the order of their runs and names. */
static int worst_first(const void *a, const void *b)
{
    size_t x = job_rank(*(const struct result_record *const *)a);
    size_t y = job_rank(*(const struct result_record *const *)b);
    return x != y ? (x < y ? -1 : 1) : jobs_cmp(a, b);
}

void aggregate_work_out(const struct aggregate_view *view, struct aggregate *ret)
{
    struct aggregate a = { .jobs = NULL };
    jobs_that_count(view, &a);
    if (!view->required)
        complete(&a, AGGREGATE_NOT_REQUIRED, "neutral", view->dispatch->at_ms);
    else if (a.n_jobs == 0)
        by_dispatch(&a, view);
    else
        by_runs(&a, view);
    for (size_t i = 0; i < a.n_jobs; i++) {
        const char *conclusion = job_conclusion(a.jobs[i]);
        a.n_ended += !!conclusion;
        a.n_bad += conclusion && conclusion_is_bad(conclusion);
    }
    if (a.n_jobs > 0)
        qsort(a.jobs, a.n_jobs, sizeof(*a.jobs), worst_first);
    *ret = a;
}

void aggregate_clear(struct aggregate *a)
{
    free(a->jobs);
    free(a->runs);
    *a = (struct aggregate){ .jobs = NULL };
}

#include "aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/model/attempt.h"
#include "../common/model/known_failure.h"

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

/* ---- which jobs count ------------------------------------------------------------------------ */

/* Fills a->jobs, n_jobs and n_replaced, in the order of jobs_cmp. */
static void jobs_that_count(const struct aggregate_view *view, struct aggregate *a)
{
    size_t n = 0;
    a->jobs = mem_alloc(view->n_jobs + 1, sizeof(*a->jobs));
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *job = &view->jobs[i];
        if (job_is_comparable(job) && strcmp(job->delivery_id, view->dispatch->delivery) == 0)
            a->jobs[n++] = job;
    }
    if (n > 1)
        qsort(a->jobs, n, sizeof(*a->jobs), jobs_cmp);
    n = jobs_drop_attempts(a->jobs, n);
    a->n_jobs = jobs_drop_replaced(a->jobs, n);
    a->n_replaced = n - a->n_jobs;
}

static void later(int64_t *ms, int64_t than)
{
    if (than > *ms)
        *ms = than;
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
        /* And a job that failed makes the run fail. */
        bool forgiven = run->forgiven && strcmp(run->from_github, "failure") == 0;
        bool counts = !forgiven && (!skipped || conclusion_is_bad(run->from_github));
        run_end(run, counts ? run->from_github : NULL);
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

static bool is_forgiven(const struct aggregate_view *view, const struct result_record *job)
{
    return view->forgive_known && job->known && job->known->reason == KNOWN_MAIN;
}

/* jobs are in the order of their runs. */
static void runs_fill(struct aggregate *a, const struct aggregate_view *view)
{
    a->runs = mem_alloc(a->n_jobs + 1, sizeof(*a->runs));
    for (size_t i = 0; i < a->n_jobs; i++) {
        const struct result_record *job = a->jobs[i];
        bool forgiven = is_forgiven(view, job);
        const char *conclusion = forgiven ? "neutral" : job_conclusion(job);
        if (a->n_runs == 0 || strcmp(a->runs[a->n_runs - 1].run_id, job->run_id) != 0)
            a->runs[a->n_runs++] =
                (struct run_sum){ .run_id = job->run_id,
                                  .answer = run_answer_find(view->answers, job->run_id) };
        struct run_sum *run = &a->runs[a->n_runs - 1];
        run->actions = run->actions || result_record_is_of_actions(job);
        run->busy = run->busy || !conclusion;
        run->forgiven = run->forgiven || forgiven;
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
    bool failed = str_is(outcome, outcome_kind_name(OUTCOME_FAILED));
    a->started = !dispatch_was_dropped(d);
    if (failed)
        complete(a, AGGREGATE_REFUSED, "failure", d->at_ms);
    else if (!a->started)
        complete(a, AGGREGATE_DROPPED, "cancelled", d->at_ms);
    else if (dispatch_never_reported(d, 0, view->silent_ms, view->now_ms))
        complete(a, AGGREGATE_SILENT, "timed_out", dispatch_report_due_ms(d, view->silent_ms));
    else {
        a->cause = str_is(outcome, outcome_kind_name(OUTCOME_WAITING)) ? AGGREGATE_WAITING
                                                                       : AGGREGATE_SENT;
        a->status = "queued";
        a->look_ms = dispatch_report_due_ms(d, view->silent_ms);
    }
}

static void by_runs(struct aggregate *a, const struct aggregate_view *view)
{
    bool ended = true, bad_at_once = false, busy = false, actions = false, forgiven = false;
    const char *conclusion = NULL;
    int64_t last_ms = 0;
    runs_fill(a, view);
    for (size_t i = 0; i < a->n_runs; i++) {
        const struct run_sum *run = &a->runs[i];
        ended = ended && run->ended;
        busy = busy || (run->busy && !run->ended);
        forgiven = forgiven || run->forgiven;
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
    else if (forgiven && !conclusion_is_bad(conclusion))
        conclusion = "neutral";
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

#include "aggregate_text.h"

#include <inttypes.h>

#include "../common/base/clock.h"
#include "check_text.h"

#define NAME_BYTES 200
#define NOTES_MAX  20   /* of runs */
#define TAIL_BYTES 1000 /* kept free for what follows the jobs */

static bool is_outcome(const struct aggregate_view *view, enum outcome_kind kind)
{
    return str_is(str_of(view->dispatch->outcome), outcome_kind_name(kind));
}

/* "6 h", "15 min", "90 s" */
static void put_duration(struct buf *to, int64_t ms)
{
    int64_t s = ms / 1000;
    if (s >= 3600 && s % 3600 == 0)
        buf_printf(to, "%" PRId64 " h", s / 3600);
    else if (s >= 60 && s % 60 == 0)
        buf_printf(to, "%" PRId64 " min", s / 60);
    else
        buf_printf(to, "%" PRId64 " s", s);
}

/* ---- title ----------------------------------------------------------------------------------- */

static void put_ended(struct buf *to, const struct aggregate *a, const char *after)
{
    buf_printf(to, "In progress: %zu of %zu %s ended", a->n_ended, a->n_jobs,
               a->n_jobs == 1 ? "job" : "jobs");
    if (a->n_bad > 0)
        buf_printf(to, ", %zu not well", a->n_bad);
    buf_puts(to, after);
}

static void put_completed(struct buf *to, const struct aggregate *a)
{
    check_put_capitalised(to, a->conclusion);
    if (a->n_bad > 0)
        buf_printf(to, ": %zu of %zu %s not successful", a->n_bad, a->n_jobs,
                   a->n_jobs == 1 ? "job" : "jobs");
    else if (conclusion_is_bad(a->conclusion))
        buf_puts(to, a->more_jobs ? ": there are more jobs than are looked at"
                                  : ": the run did not end well, though its jobs did");
    else
        buf_printf(to, ": %zu %s", a->n_jobs, a->n_jobs == 1 ? "job" : "jobs");
}

char *aggregate_title(const struct aggregate *a, const struct aggregate_view *view)
{
    struct buf title;
    buf_init(&title, 255);
    switch (a->cause) {
    case AGGREGATE_SENT:
        buf_puts(&title, is_outcome(view, OUTCOME_UNKNOWN)
                             ? "Queued: perhaps dispatched, GitHub's answer was not seen"
                             : "Queued: dispatched, no job has reported yet");
        break;
    case AGGREGATE_WAITING:
        buf_puts(&title, "Queued: the dispatch waits");
        break;
    case AGGREGATE_REFUSED:
        buf_puts(&title, "Failure: the dispatch did not get through");
        break;
    case AGGREGATE_DROPPED:
        buf_puts(&title, is_outcome(view, OUTCOME_SUPERSEDED)
                             ? "Cancelled: a newer event of the pull request came first"
                             : "Cancelled: not dispatched");
        break;
    case AGGREGATE_SILENT:
        buf_puts(&title, "Timed out: no job reported within ");
        put_duration(&title, view->silent_ms);
        break;
    case AGGREGATE_BUSY:
        put_ended(&title, a, "");
        break;
    case AGGREGATE_RUN_GOING:
        put_ended(&title, a, "; the run has not");
        break;
    case AGGREGATE_MAY_FOLLOW:
        put_ended(&title, a, "; others may follow");
        break;
    case AGGREGATE_ENDED:
        put_completed(&title, a);
        break;
    }
    return buf_take(&title, NULL);
}

/* ---- summary --------------------------------------------------------------------------------- */

static void put_dispatch(struct buf *to, const struct aggregate_view *view)
{
    const struct dispatch_view *d = view->dispatch;
    char at[CLOCK_TEXT_SIZE];
    check_put_code(to, str_of(d->repo), NAME_BYTES);
    buf_puts(to, " · delivery ");
    check_put_code(to, str_of(d->delivery), NAME_BYTES);
    clock_format(d->dispatched_ms > 0 ? d->dispatched_ms : d->at_ms, at);
    buf_printf(to, " · dispatch %s, %s", d->outcome, at);
    if (d->error[0]) {
        buf_puts(to, ": ");
        check_put_code(to, str_of(d->error), sizeof(d->error));
    }
    buf_puts(to, "\n");
}

static void put_cause(struct buf *to, const struct aggregate *a, const struct aggregate_view *view)
{
    if (a->cause == AGGREGATE_SENT || a->cause == AGGREGATE_WAITING) {
        buf_puts(to, "\nWhen no job reports within ");
        put_duration(to, view->silent_ms);
        buf_puts(to, " this ends as timed out.\n");
    }
    if (a->cause == AGGREGATE_MAY_FOLLOW) {
        buf_puts(to, "\nThis CI has not said whether more jobs follow (<code>run_complete</code>): "
                     "it counts as ended when nothing was in progress for ");
        put_duration(to, view->quiet_ms);
        buf_puts(to, ".\n");
    }
    if (a->more_jobs)
        buf_printf(to, "\nThere are more jobs than the %zu that are looked at.\n", view->n_jobs);
    if (view->unchecked > 0)
        buf_printf(to,
                   "\n%zu %s no check run of %s own: at most %" PRId64 " of a commit have one.\n",
                   view->unchecked, view->unchecked == 1 ? "job has" : "jobs have",
                   view->unchecked == 1 ? "its" : "their", view->checks_max);
}

static void put_run(struct buf *to, const struct run_sum *run, const struct aggregate_view *view)
{
    if (run->from_github) {
        buf_puts(to, "\nGitHub says that run ");
        check_put_code(to, str_of(run->run_id), NAME_BYTES);
        buf_puts(to, " came to ");
        check_put_code(to, str_of(run->from_github), NAME_BYTES);
        buf_puts(to, ".\n");
        return;
    }
    if (!run->refused)
        return;
    bool asked = run->answer && run->answer->said == RUN_SAID_NO;
    buf_printf(to, "\nGitHub %s how run ", asked ? "does not tell" : "is not asked");
    check_put_code(to, str_of(run->run_id), NAME_BYTES);
    buf_puts(to, " ends");
    if (run->answer && run->answer->error[0]) {
        buf_puts(to, " (");
        check_put_code(to, str_of(run->answer->error), sizeof(run->answer->error));
        buf_puts(to, ")");
    }
    buf_puts(to, ": it goes by the jobs alone, once nothing was in progress for ");
    put_duration(to, view->quiet_ms);
    buf_puts(to, ".\n");
}

static void put_job(struct buf *to, const struct result_record *job)
{
    const char *conclusion = job_conclusion(job), *separator = " · ";
    buf_printf(to, "- **%s** ", conclusion ? conclusion : "in_progress");
    check_put_code(to, str_of(job->workflow_name), NAME_BYTES);
    buf_puts(to, " / ");
    check_put_code(to, str_of(job->job_name), NAME_BYTES);
    if (!str_is(str_of(job->run_attempt), "1")) {
        buf_puts(to, " · attempt ");
        check_put_code(to, str_of(job->run_attempt), 40);
    }
    check_put_count(to, &separator, job->failed, "failed");
    check_put_count(to, &separator, job->passed, "passed");
    check_put_count(to, &separator, job->skipped, "skipped");
    separator = " · ";
    check_put_link(to, &separator, "Log", job->run_url);
    buf_putc(to, '\n');
}

static void put_jobs(struct buf *to, const struct aggregate *a)
{
    if (a->n_jobs > 0)
        buf_puts(to, "\n### Jobs\n\n");
    for (size_t i = 0; i < a->n_jobs; i++) {
        struct buf CLEANUP(buf_clear) line;
        buf_init(&line, CHECK_SUMMARY_MAX);
        put_job(&line, a->jobs[i]);
        if (buf_full(&line) || to->len + line.len > CHECK_SUMMARY_MAX - TAIL_BYTES) {
            buf_printf(to, "- … and %zu more\n", a->n_jobs - i);
            break;
        }
        buf_put(to, buf_str(&line));
    }
    if (a->n_replaced > 0)
        buf_printf(to, "\n%zu %s of runs that newer ones replaced %s not counted.\n", a->n_replaced,
                   a->n_replaced == 1 ? "job" : "jobs", a->n_replaced == 1 ? "is" : "are");
}

char *aggregate_summary(const struct aggregate *a, const struct aggregate_view *view,
                        const char *marker)
{
    struct buf summary;
    buf_init(&summary, CHECK_SUMMARY_MAX);
    buf_puts(&summary, marker);
    buf_puts(&summary, "\n");
    put_dispatch(&summary, view);
    put_cause(&summary, a, view);
    for (size_t i = 0; i < a->n_runs && i < NOTES_MAX; i++)
        put_run(&summary, &a->runs[i], view);
    put_jobs(&summary, a);
    return buf_take(&summary, NULL);
}

#include "api.h"

#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/model/ids.h"
#include "../../common/model/known_failure.h"

static void put_level(struct buf *to, int64_t level)
{
    json_put_string(to, "level", level_name((int)level));
}

static void put_known(struct buf *to, const struct known_failure *known)
{
    json_put_name(to, "known");
    buf_puts(to, known ? "{" : "null");
    if (!known)
        return;
    struct buf CLEANUP(buf_clear) sentence = BUF_INIT(KNOWN_SENTENCE_MAX);
    bool flaky = known->flaky > 0;
    known_failure_put(&sentence, known);
    json_put_string(to, "reason", known_reason_name(known->reason));
    json_put_text(to, "sentence", buf_str(&sentence));
    json_put_string(to, "since_sha", known->since_sha);
    json_put_time(to, "since_at", known->since_ms);
    json_put_bool(to, "since_or_earlier", known->or_earlier);
    json_put_number(to, "flaky_commits", flaky ? (int64_t)known->flaky : -1);
    json_put_number(to, "commits", flaky ? (int64_t)known->commits : -1);
    json_put_number(to, "other_pull_requests", (int64_t)known->others);
    buf_putc(to, '}');
}

void api_put_job(struct buf *to, const struct result_record *job)
{
    result_record_to_json(job, to);
    to->len--; /* its last bracket */
    json_put_bool(to, "replaced", job->replaced);
    json_put_bool(to, "no_conclusion", job->no_conclusion > 0);
    put_known(to, job->known);
    buf_putc(to, '}');
}

void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n)
{
    json_put_begin(to, "jobs", '[');
    for (size_t i = 0; i < n; i++) {
        json_put_comma(to);
        api_put_job(to, &jobs[i]);
    }
    buf_putc(to, ']');
}

/* ---- a downstream ---------------------------------------------------------------------------- */

/* entry: NULL where it is not listed. */
static void put_people(struct buf *to, const struct allowlist_entry *entry)
{
    json_put_text(to, "device", entry && entry->device.len > 0 ? entry->device : STR_NONE);
    json_put_begin(to, "oncalls", '[');
    for (size_t i = 0; entry && i < entry->n_oncalls; i++) {
        json_put_comma(to);
        json_text_put(to, entry->oncalls[i]);
    }
    buf_putc(to, ']');
}

static void put_counts(struct buf *to, const struct jobs_score *score)
{
    json_put_number(to, "jobs", (int64_t)score->jobs);
    json_put_number(to, "failed", (int64_t)score->failed);
    json_put_number(to, "running", (int64_t)score->running);
}

static void put_run(struct buf *to, const struct jobs_score *run, bool more)
{
    json_put_name(to, "last_run");
    buf_puts(to, run->worst ? "{" : "null");
    if (!run->worst)
        return;
    put_counts(to, run);
    json_put_bool(to, "more_jobs", more);
    json_put_name(to, "worst");
    api_put_job(to, run->worst);
    buf_putc(to, '}');
}

void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n,
                  const struct window *window)
{
    size_t looked = n < RUN_JOBS ? n : RUN_JOBS;
    struct jobs_score run = score_of_newest_run(jobs, looked);
    json_put_begin(to, NULL, '{');
    json_put_text(to, "repo", entry ? entry->repo : repo);
    put_level(to, entry ? entry->level : 0);
    put_people(to, entry);
    json_put_name(to, "demoted");
    buf_puts(to, demotion ? "{" : "null");
    if (demotion) {
        json_put_time(to, "since", demotion->since_ms);
        json_put_string(to, "reason", demotion->reason);
        buf_putc(to, '}');
    }
    window_put(to, window);
    /* What it reported before the oldest of them is not seen. */
    put_run(to, &run, n >= RUN_JOBS && run.began_ms <= jobs[looked - 1].last_ms);
    buf_putc(to, '}');
}

/* ---- a delivery ------------------------------------------------------------------------------ */

/* One of the downstreams of a delivery; d: NULL where its dispatch is not known. */
typedef void put_fn(struct buf *to, const struct api_delivery *delivery, const char *repo,
                    int64_t level, const struct dispatch_view *d);

static void put_check(struct buf *to, const struct check_state *c)
{
    json_put_name(to, "check_run");
    buf_puts(to, c && c->status ? "{" : "null");
    if (!c || !c->status)
        return;
    json_put_number(to, "id", c->sent.id ? c->sent.id : -1);
    json_put_string(to, "status", c->status);
    json_put_string(to, "conclusion", c->conclusion);
    json_put_string(to, "title", c->sent.title);
    json_put_string(to, "absent", c->absent);
    json_put_time(to, "until", c->until_ms);
    json_put_bool(to, "blocks", c->blocks);
    json_put_bool(to, "of_other_delivery", c->other);
    buf_putc(to, '}');
}

static void put_dispatch(struct buf *to, const struct dispatch_view *d, int64_t due_ms)
{
    json_put_name(to, "dispatch");
    buf_puts(to, d ? "{" : "null");
    if (!d)
        return;
    json_put_string(to, "outcome", d->outcome);
    json_put_time(to, "received_at", d->received_ms);
    json_put_time(to, "at", d->at_ms);
    json_put_time(to, "dispatched_at", d->dispatched_ms);
    json_put_number(to, "http_status", d->http_status);
    json_put_number(to, "attempt", d->attempt);
    json_put_string(to, "maybe_duplicate", task_mark_name(d->maybe_duplicate));
    json_put_string(to, "error", d->error);
    json_put_time(to, "next_at", d->next_ms);
    json_put_time(to, "report_due_at", due_ms);
    buf_putc(to, '}');
}

static void put_downstream(struct buf *to, const struct api_delivery *delivery, const char *repo,
                           int64_t level, const struct dispatch_view *d)
{
    const struct allowlist_version *version = delivery->version;
    bool listed = version && version->list;
    const struct demotion *demotion =
        listed ? demotion_in_force(version, delivery->demoting, str_of(repo)) : NULL;
    struct jobs_score score = score_of_downstream(delivery->jobs, delivery->n_jobs, str_of(repo));
    json_put_begin(to, NULL, '{');
    json_put_string(to, "repo", repo);
    put_level(to, level);
    put_people(to, listed ? allowlist_find(version->list, str_of(repo)) : NULL);
    json_put_string(to, "demoted", demotion ? demotion->reason : NULL);
    put_check(to, d && delivery->checks ? &delivery->checks[d - delivery->dispatches] : NULL);
    /* Where there are more jobs than these nobody knows it. */
    bool silent = d && score.jobs == 0 && !delivery->more_jobs && delivery->overdue_ms > 0;
    json_put_bool(to, "never_reported",
                  silent && dispatch_never_reported(d, 0, delivery->overdue_ms, delivery->now_ms));
    put_dispatch(to, d, silent ? dispatch_report_due_ms(d, delivery->overdue_ms) : 0);
    buf_putc(to, '}');
}

/* Whether its downstream is listed already: by its dispatch, or by an earlier job. */
static bool is_listed(const struct api_delivery *delivery, size_t job)
{
    struct str repo = str_of(delivery->jobs[job].repo);
    for (size_t i = 0; i < delivery->n_dispatches; i++)
        if (str_eq_nocase(str_of(delivery->dispatches[i].repo), repo))
            return true;
    for (size_t i = 0; i < job; i++)
        if (str_eq_nocase(str_of(delivery->jobs[i].repo), repo))
            return true;
    return false;
}

/* First the downstreams with a dispatch, then those known only by their jobs. */
static void put_downstreams(struct buf *to, const struct api_delivery *delivery, put_fn *put)
{
    json_put_begin(to, "downstreams", '[');
    for (size_t i = 0; i < delivery->n_dispatches; i++) {
        const struct dispatch_view *d = &delivery->dispatches[i];
        put(to, delivery, d->repo, d->level, d);
    }
    for (size_t i = 0; i < delivery->n_jobs; i++)
        if (!is_listed(delivery, i))
            put(to, delivery, delivery->jobs[i].repo, delivery->jobs[i].level, NULL);
    buf_putc(to, ']');
}

/* When the relay got the reports of each job, in the order of jobs. */
static void put_clocks(struct buf *to, const struct api_delivery *delivery)
{
    json_put_number(to, "silent_after_seconds", delivery->overdue_ms / 1000);
    json_put_begin(to, "clocks", '[');
    for (size_t i = 0; i < delivery->n_jobs; i++) {
        json_put_begin(to, NULL, '{');
        json_put_time(to, "in_progress", delivery->jobs[i].in_progress_ms);
        json_put_time(to, "timed_out", delivery->jobs[i].timed_out_ms);
        json_put_time(to, "completed", delivery->jobs[i].completed_ms);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

void api_put_delivery(struct buf *to, const struct api_delivery *delivery)
{
    /* Whether the commit is one of the upstream's; null: not a self-report, or not looked up yet.
     */
    static const char *const exists[] = {
        [COMMIT_UNKNOWN] = "null",
        [COMMIT_ASKED] = "null",
        [COMMIT_ABSENT] = "false",
        [COMMIT_EXISTS] = "true",
    };
    const struct dispatch_view *d = delivery->n_dispatches > 0 ? &delivery->dispatches[0] : NULL;
    const struct result_record *job = delivery->n_jobs > 0 ? &delivery->jobs[0] : NULL;
    int64_t pr = d ? d->pr : job ? job->pr_number : 0;
    json_put_begin(to, NULL, '{');
    json_put_text(to, "delivery_id", delivery->id);
    json_put_string(to, "event_type", d ? d->event_type : job ? job->event_type : NULL);
    json_put_string(to, "action", d ? d->action : NULL);
    json_put_string(to, "head_sha", d ? d->head_sha : job ? result_record_commit(job) : NULL);
    json_put_number(to, "pr_number", pr > 0 ? pr : -1);
    json_put_name(to, "commit_exists");
    buf_puts(to, exists[delivery->commit]);
    put_downstreams(to, delivery, put_downstream);
    json_put_bool(to, "more_jobs", delivery->more_jobs);
    if (delivery->with_clocks)
        put_clocks(to, delivery);
    api_put_jobs(to, delivery->jobs, delivery->n_jobs);
    buf_putc(to, '}');
}

/* ---- a pull request in the list -------------------------------------------------------------- */

static void put_state(struct buf *to, const struct api_delivery *delivery, const char *repo,
                      int64_t level, const struct dispatch_view *d)
{
    struct jobs_score score = score_of_downstream(delivery->jobs, delivery->n_jobs, str_of(repo));
    bool silent = d && delivery->silent && delivery->silent[d - delivery->dispatches];
    enum job_state state = score.worst            ? score.worst->state
                           : silent && level >= 3 ? JOB_TIMED_OUT
                                                  : JOB_NONE;
    json_put_begin(to, NULL, '{');
    json_put_string(to, "repo", repo);
    put_level(to, level);
    json_put_string(to, "status", state == JOB_NONE ? NULL : job_state_name(state));
    json_put_string(to, "conclusion", score.worst ? score.worst->conclusion : NULL);
    json_put_string(to, "dispatch", d ? d->outcome : NULL);
    json_put_bool(to, "never_reported", silent);
    json_put_bool(to, "blocks", score_blocks(&score, d, level));
    put_counts(to, &score);
    buf_putc(to, '}');
}

void api_put_pr(struct buf *to, int64_t pr, int64_t at_ms, const struct pr_text *text,
                const struct api_delivery *shown)
{
    json_put_begin(to, NULL, '{');
    json_put_number(to, "pr_number", pr);
    json_put_string(to, "title", text->title);
    json_put_string(to, "author", text->author);
    json_put_string(to, "head_sha", text->head_sha);
    json_put_time(to, "at", at_ms);
    json_put_text(to, "delivery_id", shown->id);
    json_put_bool(to, "more_jobs", shown->more_jobs);
    put_downstreams(to, shown, put_state);
    buf_putc(to, '}');
}

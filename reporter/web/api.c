#include "api.h"

#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/model/ids.h"

/* Absent or empty: null. */
static void put_text(struct buf *to, const char *name, const char *text)
{
    json_put_text(to, name, text && *text ? str_of(text) : STR_NONE);
}

static void put_level(struct buf *to, int64_t level)
{
    put_text(to, "level", level_name((int)level));
}

void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < n; i++) {
        json_put_comma(to);
        result_record_to_json(&jobs[i], to);
    }
    buf_putc(to, ']');
}

/* ---- a downstream ---------------------------------------------------------------------------- */

void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n)
{
    struct score score = score_of(jobs, n);
    json_put_comma(to);
    buf_putc(to, '{');
    json_put_text(to, "repo", entry ? entry->repo : repo);
    put_level(to, entry ? entry->level : 0);
    json_put_text(to, "device", entry && entry->device.len > 0 ? entry->device : STR_NONE);
    json_put_name(to, "oncalls");
    buf_putc(to, '[');
    for (size_t i = 0; entry && i < entry->n_oncalls; i++) {
        json_put_comma(to);
        json_text_put(to, entry->oncalls[i]);
    }
    buf_putc(to, ']');
    json_put_name(to, "demoted");
    buf_puts(to, demotion ? "{" : "null");
    if (demotion) {
        json_put_time(to, "since", demotion->since_ms);
        put_text(to, "reason", demotion->reason);
        buf_putc(to, '}');
    }
    json_put_number(to, "jobs_seen", (int64_t)score.jobs);
    json_put_number(to, "completed", (int64_t)score.completed);
    json_put_number(to, "successful", (int64_t)score.successful);
    json_put_name(to, "pass_rate");
    if (score.completed > 0)
        buf_printf(to, "%.4f", (double)score.successful / (double)score.completed);
    else
        buf_puts(to, "null");
    json_put_seconds(to, "queue_time_mean", score.queue_mean_ms);
    json_put_name(to, "last");
    if (n > 0)
        result_record_to_json(&jobs[0], to);
    else
        buf_puts(to, "null");
    buf_putc(to, '}');
}

/* ---- a delivery ------------------------------------------------------------------------------ */

/* d: NULL where it is not known. */
static void put_downstream(struct buf *to, const char *repo, int64_t level,
                           const struct dispatch_view *d)
{
    json_put_comma(to);
    buf_putc(to, '{');
    put_text(to, "repo", repo);
    put_level(to, level);
    json_put_name(to, "dispatch");
    buf_puts(to, d ? "{" : "null");
    if (d) {
        put_text(to, "outcome", d->outcome);
        json_put_time(to, "at", d->at_ms);
        json_put_time(to, "dispatched_at", d->dispatched_ms);
        json_put_number(to, "http_status", d->http_status);
        json_put_number(to, "attempt", d->attempt);
        put_text(to, "maybe_duplicate", task_mark_name(d->maybe_duplicate));
        put_text(to, "error", d->error);
        buf_putc(to, '}');
    }
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
    json_put_comma(to);
    buf_putc(to, '{');
    json_put_text(to, "delivery_id", delivery->id);
    put_text(to, "event_type", d ? d->event_type : job ? job->event_type : NULL);
    put_text(to, "head_sha", d ? d->head_sha : job ? job->head_sha : NULL);
    json_put_number(to, "pr_number", pr > 0 ? pr : -1);
    json_put_name(to, "commit_exists");
    buf_puts(to, exists[delivery->commit]);
    json_put_name(to, "downstreams");
    buf_putc(to, '[');
    for (size_t i = 0; i < delivery->n_dispatches; i++) {
        d = &delivery->dispatches[i];
        put_downstream(to, d->repo, d->level, d);
    }
    for (size_t i = 0; i < delivery->n_jobs; i++) /* whose dispatch is not known here */
        if (!is_listed(delivery, i))
            put_downstream(to, delivery->jobs[i].repo, delivery->jobs[i].level, NULL);
    buf_putc(to, ']');
    json_put_name(to, "jobs");
    api_put_jobs(to, delivery->jobs, delivery->n_jobs);
    buf_putc(to, '}');
}

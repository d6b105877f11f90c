#include "api.h"

#include <inttypes.h>
#include <stdio.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "../../common/model/json_scan.h"

static void comma(struct buf *to)
{
    char last = to->len > 0 ? to->ptr[to->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        buf_putc(to, ',');
}

void api_name(struct buf *to, const char *name)
{
    comma(to);
    buf_printf(to, "\"%s\":", name);
}

void api_text(struct buf *to, const char *name, struct str text)
{
    api_name(to, name);
    if (text.len > 0)
        json_quote(to, text);
    else
        buf_puts(to, "null");
}

void api_time(struct buf *to, const char *name, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (wall_ms > 0)
        clock_format(wall_ms, text);
    api_text(to, name, wall_ms > 0 ? str_of(text) : STR_NONE);
}

static void put_count(struct buf *to, const char *name, int64_t n)
{
    api_name(to, name);
    buf_printf(to, "%" PRId64, n);
}

static void put_level(struct buf *to, int64_t level)
{
    api_text(to, "level", str_of(level_name((int)level)));
}

void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < n; i++) {
        comma(to);
        result_record_to_json(&jobs[i], to);
    }
    buf_putc(to, ']');
}

/* ---- a downstream ---------------------------------------------------------------------------- */

static void put_score(struct buf *to, const struct score *score)
{
    put_count(to, "jobs_seen", (int64_t)score->jobs);
    put_count(to, "completed", (int64_t)score->completed);
    put_count(to, "successful", (int64_t)score->successful);
    api_name(to, "pass_rate");
    if (score->completed > 0)
        buf_printf(to, "%.4f", (double)score->successful / (double)score->completed);
    else
        buf_puts(to, "null");
    api_name(to, "queue_time_mean");
    if (score->queue_mean_ms >= 0)
        buf_printf(to, "%.3f", (double)score->queue_mean_ms / 1000);
    else
        buf_puts(to, "null");
}

static void put_demotion(struct buf *to, const struct demotion *demotion)
{
    api_name(to, "demoted");
    if (!demotion) {
        buf_puts(to, "null");
        return;
    }
    buf_putc(to, '{');
    api_time(to, "since", demotion->since_ms);
    api_text(to, "reason", str_of(demotion->reason));
    buf_putc(to, '}');
}

void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n)
{
    struct score score = score_of(jobs, n);
    comma(to);
    buf_putc(to, '{');
    api_text(to, "repo", entry ? entry->repo : repo);
    put_level(to, entry ? entry->level : 0);
    api_text(to, "device", entry ? entry->device : STR_NONE);
    api_name(to, "oncalls");
    buf_putc(to, '[');
    for (size_t i = 0; entry && i < entry->n_oncalls; i++) {
        comma(to);
        json_quote(to, entry->oncalls[i]);
    }
    buf_putc(to, ']');
    put_demotion(to, demotion);
    put_score(to, &score);
    api_name(to, "last");
    if (n > 0)
        result_record_to_json(&jobs[0], to);
    else
        buf_puts(to, "null");
    buf_putc(to, '}');
}

/* ---- a delivery ------------------------------------------------------------------------------ */

static void put_dispatch(struct buf *to, const struct dispatch_view *d)
{
    api_name(to, "dispatch");
    if (!d) {
        buf_puts(to, "null");
        return;
    }
    buf_putc(to, '{');
    api_text(to, "outcome", str_of(d->outcome));
    api_time(to, "at", d->at_ms);
    api_time(to, "dispatched_at", d->dispatched_ms);
    put_count(to, "http_status", d->http_status);
    put_count(to, "attempt", d->attempt);
    api_text(to, "maybe_duplicate", str_of(task_mark_name(d->maybe_duplicate)));
    api_text(to, "error", str_of(d->error));
    buf_putc(to, '}');
}

static void put_downstream(struct buf *to, struct str repo, int64_t level,
                           const struct dispatch_view *dispatch)
{
    comma(to);
    buf_putc(to, '{');
    api_text(to, "repo", repo);
    put_level(to, level);
    put_dispatch(to, dispatch);
    buf_putc(to, '}');
}

static bool was_dispatched(const struct api_delivery *delivery, struct str repo)
{
    for (size_t i = 0; i < delivery->n_dispatches; i++)
        if (str_eq_nocase(str_of(delivery->dispatches[i].repo), repo))
            return true;
    return false;
}

static bool seen_before(const struct api_delivery *delivery, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq_nocase(str_of(delivery->jobs[k].repo), str_of(delivery->jobs[i].repo)))
            return true;
    return false;
}

static void put_target(struct buf *to, const struct api_delivery *delivery)
{
    struct str sha = STR_NONE, type = STR_NONE;
    int64_t pr = 0;
    if (delivery->n_dispatches > 0) {
        sha = str_of(delivery->dispatches[0].head_sha);
        type = str_of(delivery->dispatches[0].event_type);
        pr = delivery->dispatches[0].pr;
    } else if (delivery->n_jobs > 0) {
        sha = str_of(delivery->jobs[0].head_sha);
        type = str_of(delivery->jobs[0].event_type);
        pr = delivery->jobs[0].pr_number;
    }
    api_text(to, "event_type", type);
    api_text(to, "head_sha", sha);
    api_name(to, "pr_number");
    if (pr > 0)
        buf_printf(to, "%" PRId64, pr);
    else
        buf_puts(to, "null");
}

/* Whether the commit is one of the upstream's; null: not a self-report, or not looked up yet. */
static void put_commit(struct buf *to, enum commit_seen seen)
{
    static const char *const texts[] = {
        [COMMIT_UNKNOWN] = "null",
        [COMMIT_ABSENT] = "false",
        [COMMIT_EXISTS] = "true",
    };
    api_name(to, "commit_exists");
    buf_puts(to, texts[seen]);
}

void api_put_delivery(struct buf *to, const struct api_delivery *delivery)
{
    comma(to);
    buf_putc(to, '{');
    api_text(to, "delivery_id", delivery->id);
    put_target(to, delivery);
    put_commit(to, delivery->commit);
    api_name(to, "downstreams");
    buf_putc(to, '[');
    for (size_t i = 0; i < delivery->n_dispatches; i++) {
        const struct dispatch_view *d = &delivery->dispatches[i];
        put_downstream(to, str_of(d->repo), d->level, d);
    }
    for (size_t i = 0; i < delivery->n_jobs; i++) /* whose dispatch is not known here */
        if (!was_dispatched(delivery, str_of(delivery->jobs[i].repo)) && !seen_before(delivery, i))
            put_downstream(to, str_of(delivery->jobs[i].repo), delivery->jobs[i].level, NULL);
    buf_putc(to, ']');
    api_name(to, "jobs");
    api_put_jobs(to, delivery->jobs, delivery->n_jobs);
    buf_putc(to, '}');
}

/* What became of one delivery, and of all of a pull request. */
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/view/indexes.h"
#include "../../common/view/pull_requests.h"
#include "../aggregate.h"
#include "check_state.h"

#define JOBS_FULL     100 /* that come with failed tests and verdict */
#define PREFIX_MIN    8   /* characters of the beginning of an id */
#define PREFIX_SHOWN  20
#define PR_DELIVERIES 25
#define PR_JOBS       400 /* of each delivery */
#define LABELS_BYTES  8192

/* limit and full_max as jobs_of_delivery; full_max 0: without what the timeline needs, too. *known:
 * it has a dispatch or a job. */
static enum err delivery_put(const struct web_view *w, struct str id, size_t limit, size_t full_max,
                             struct buf *to, bool *known, struct why *why)
{
    struct redis *r = w->redis;
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    size_t n = 0;
    enum commit_seen seen = COMMIT_UNKNOWN;
    enum err err = jobs_of_delivery(r, id, limit, full_max, &jobs, why);
    if (!err)
        err = jobs_of_self_run_add(r, &jobs, why);
    jobs_mark_replaced(jobs.at, jobs.n);
    if (!err)
        err = lists_known(w->lists, r, &jobs, why);
    bool self = !err && jobs.n > 0 && result_record_is_self(&jobs.at[0]);
    const char *claimed = self ? result_record_commit(&jobs.at[0]) : NULL;
    if (claimed)
        err = commit_seen_get(r, str_of(claimed), &seen, why);
    if (!err)
        err = dispatches_of_delivery(r, id, limit, &dispatches, &n, why);
    struct demotions *demoting = NULL;
    if (!err)
        err = prs_demoting_get(r, &demoting, why);
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    struct api_delivery delivery = { .id = id,
                                     .jobs = jobs.at,
                                     .n_jobs = jobs.n,
                                     .dispatches = dispatches,
                                     .n_dispatches = n,
                                     .commit = seen,
                                     .more_jobs = jobs.n >= limit,
                                     .version = version,
                                     .demoting = demoting,
                                     .overdue_ms = w->reporter->times.overdue_ms,
                                     .now_ms = clock_wall_ms(),
                                     .with_clocks = full_max > 0 };
    struct check_state *checks = mem_alloc(n + 1, sizeof(*checks));
    for (size_t i = 0; !err && full_max > 0 && i < n; i++)
        err = check_state_get(w, &delivery, &dispatches[i], &checks[i], why);
    delivery.checks = checks;
    *known = jobs.n + n > 0;
    if (!err)
        api_put_delivery(to, &delivery);
    allowlist_feed_release(w->reporter->feed, version);
    demotions_free(demoting);
    free(checks);
    free(dispatches);
    return err;
}

/* The delivery of an id, or of the beginning of one. {"matches": [the first 20]} if several begin
 * so. Only deliveries with a dispatch are found by their beginning. */
enum err delivery_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                       bool *known, struct why *why)
{
    size_t limit = (size_t)path_number(ask->params[0]);
    struct view_index CLEANUP(view_index_clear) found = { NULL, 0 };
    enum err err = delivery_put(w, ask->id, limit, JOBS_FULL, to, known, why);
    if (err || *known || ask->id.len < PREFIX_MIN)
        return err;
    buf_reset(to);
    err = deliveries_by_prefix(w->redis, ask->id, clock_wall_ms(), w->reporter->times.ttl_s,
                               PREFIX_SHOWN, &found, why);
    if (!err && found.n == 1)
        return delivery_put(w, str_of(found.at[0].name), limit, JOBS_FULL, to, known, why);
    *known = found.n > 0;
    buf_puts(to, "{\"matches\":[");
    for (size_t i = 0; i < found.n; i++) {
        json_put_comma(to);
        json_text_put(to, str_of(found.at[i].name));
    }
    buf_puts(to, "]}");
    return err;
}

enum err pr_page(const struct web_view *w, const struct path_ask *ask, struct buf *to, bool *known,
                 struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct view_index CLEANUP(view_index_clear) self = { NULL, 0 };
    struct pr_now CLEANUP(pr_now_clear) now = { .labels = NULL };
    struct pr_text text = { .title = "" };
    int64_t pr = pr_number(ask->id);
    enum err err = deliveries_of_pr(w->redis, pr, PR_DELIVERIES, &deliveries, why);
    if (!err)
        err = pr_now_get(w->redis, pr, &now, why);
    view_index_add(&self, ask->id, 0);
    if (!err)
        err = pr_texts_get(w->redis, &self, &text, why);
    if (err)
        return err;
    struct str rest = str_of(now.labels), line;
    *known = deliveries.n > 0;
    buf_putc(to, '{');
    json_put_number(to, "pr_number", pr);
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    json_put_string(to, "title", text.title);
    json_put_string(to, "author", text.author);
    json_put_string(to, "head_sha", text.head_sha);
    buf_puts(to, ",\"labels\":[");
    while (str_split(&rest, '\n', &line)) {
        json_put_comma(to);
        json_text_put(to, line);
    }
    buf_puts(to, "],\"deliveries\":[");
    for (size_t i = 0; !err && i < deliveries.n; i++) {
        bool ignored;
        err = delivery_put(w, str_of(deliveries.at[i].name), PR_JOBS, 0, to, &ignored, why);
    }
    buf_puts(to, "]}");
    return err;
}

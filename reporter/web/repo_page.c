/* One back end: its object with its newest jobs, and its badge. */
#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/view/dispatches.h"
#include "../aggregate.h"
#include "api.h"
#include "badge.h"
#include "paths.h"
#include "summary.h"

#define PAGE_JOBS 200
#define EVENT_PRS 50 /* whose newest event is looked at */

/* The pull requests of those jobs, of the newest 1,000 that there are. */
static enum err pulls_put(const struct web_view *w, const struct result_record *jobs, size_t n,
                          struct buf *to, struct why *why)
{
    struct pr_list *list;
    enum err err = lists_prs(w->lists, w->redis, &list, why);
    json_put_begin(to, "pulls", '[');
    for (size_t i = 0; !err && i < list->prs.n; i++) {
        int64_t number = 0;
        size_t of = 0;
        (void)str_to_i64(str_of(list->prs.at[i].name), &number);
        while (of < n && jobs[of].pr_number != number)
            of++;
        if (of == n)
            continue;
        json_put_begin(to, NULL, '{');
        json_put_number(to, "pr_number", number);
        json_put_string(to, "title", list->texts[i].title);
        json_put_string(to, "author", list->texts[i].author);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
    return err;
}

static bool has_reported(const struct job_list *jobs, struct str delivery)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (str_eq(str_of(jobs->at[i].delivery_id), delivery))
            return true;
    return false;
}

static void event_put(struct buf *to, const struct dispatch_view *d, struct str delivery,
                      const struct job_list *jobs)
{
    json_put_begin(to, NULL, '{');
    json_put_text(to, "delivery_id", delivery);
    json_put_number(to, "pr_number", d->pr > 0 ? d->pr : -1);
    json_put_string(to, "event_type", d->event_type);
    json_put_string(to, "action", d->action);
    json_put_string(to, "head_sha", d->head_sha);
    json_put_string(to, "outcome", d->outcome);
    json_put_time(to, "at", d->at_ms);
    json_put_number(to, "http_status", d->http_status > 0 ? d->http_status : -1);
    json_put_number(to, "attempt", d->attempt);
    json_put_string(to, "error", d->error);
    json_put_bool(to, "reported", has_reported(jobs, delivery));
    buf_putc(to, '}');
}

/* The newest events that it got: of each of the newest pull requests the newest delivery, what
 * GitHub answered to its dispatch, and whether a job reported on it. For a vendor without access to
 * the relay: it says what `crcrctl probe` says. */
static enum err events_put(const struct web_view *w, struct str repo, const struct job_list *jobs,
                           struct buf *to, struct why *why)
{
    struct pr_list *list;
    enum err err = lists_prs(w->lists, w->redis, &list, why);
    for (size_t i = 0; !err && i < list->prs.n && i < EVENT_PRS; i++) {
        struct view_index CLEANUP(view_index_clear) newest = { NULL, 0 };
        struct dispatch_view d;
        bool found = false;
        err = deliveries_of_pr(w->redis, pr_number(str_of(list->prs.at[i].name)), 1, &newest, why);
        if (!err && newest.n > 0)
            err = dispatch_view_get(w->redis, str_of(newest.at[0].name), repo, &found, &d, why);
        if (!err && found)
            event_put(to, &d, str_of(newest.at[0].name), jobs);
    }
    return err;
}

enum err repo_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                   bool *known, struct why *why)
{
    const struct job_list *jobs;
    const int64_t before_ms = path_number(ask->params[0]);
    size_t end;
    /* All that there are: what replaces a job may be on another page. */
    enum err err = lists_jobs(w->lists, w->redis, ask->id, &jobs, why);
    if (err)
        return err;
    size_t begin = job_list_page(jobs, before_ms, PAGE_JOBS, &end);
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    struct window CLEANUP(window_clear)
        window = { .days = DEFAULT_DAYS, .now_ms = clock_wall_ms() };
    *known = allowlist_find(version->list, ask->id) || jobs->n > 0;
    buf_puts(to, "{\"downstream\":");
    if (*known)
        err = summary_repo_put(w, version, ask->id, jobs, &window, to, why);
    allowlist_feed_release(w->reporter->feed, version);
    json_put_bool(to, "more_jobs", end < jobs->n);
    json_put_number(to, "before", end < jobs->n ? jobs->at[end - 1].last_ms : -1);
    json_put_begin(to, "received_ms", '[');
    for (size_t i = begin; i < end; i++) {
        json_put_comma(to);
        buf_printf(to, "%lld", (long long)jobs->at[i].last_ms);
    }
    buf_putc(to, ']');
    json_put_begin(to, "events", '[');
    if (!err && before_ms == 0) /* the first page shows them */
        err = events_put(w, ask->id, jobs, to, why);
    buf_putc(to, ']');
    if (!err)
        err = pulls_put(w, jobs->at + begin, end - begin, to, why);
    api_put_jobs(to, jobs->at + begin, end - begin);
    buf_putc(to, '}');
    return err;
}

/* An SVG image; when it is not known a grey one that says so. */
enum err badge_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                    bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct window CLEANUP(window_clear)
        window = { .days = DEFAULT_DAYS, .now_ms = clock_wall_ms() };
    enum err err = jobs_of_repo(w->redis, ask->id, false, RUN_JOBS, &jobs, why);
    if (!err)
        err = window_read(w->redis, ask->id, &window, why);
    if (err)
        return err;
    jobs_mark_replaced(jobs.at, jobs.n);
    int64_t completed = 0, successful = 0;
    for (size_t i = 0; i < window.n; i++) {
        completed += window.at[i].of[RUN_PULL].count[FIGURE_COMPLETED];
        successful += window.at[i].of[RUN_PULL].count[FIGURE_SUCCESSFUL];
    }
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    const struct allowlist_entry *entry = allowlist_find(version->list, ask->id);
    int level = entry ? entry->level : 0;
    allowlist_feed_release(w->reporter->feed, version);
    *known = level > 0 || jobs.n > 0;
    if (*known)
        badge_put(to, level, completed, successful, jobs.at, jobs.n);
    else
        badge_put_unknown(to);
    return OK;
}

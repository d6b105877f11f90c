/* One back end: its object with its newest jobs, and its badge. */
#include <jansson.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/model/ids.h"
#include "../../common/model/json_member.h"
#include "../../common/view/checks.h"
#include "../../common/view/dispatches.h"
#include "../aggregate.h"
#include "api.h"
#include "badge.h"
#include "paths.h"
#include "summary.h"

#define PAGE_JOBS 200
#define EVENT_PRS 50  /* whose newest event is looked at */
#define FAILURES  100 /* of the days of the window, the newest */

/* The pull requests of those jobs, of the newest 1,000 that there are. */
static enum err pulls_put(const struct web_view *w, const struct result_record *jobs, size_t n,
                          struct buf *to, struct why *why)
{
    struct pr_list *list;
    enum err err = lists_prs(w->lists, w->redis, &list, why);
    json_put_begin(to, "pulls", '[');
    for (size_t i = 0; !err && i < list->prs.n; i++) {
        int64_t number = pr_number(str_of(list->prs.at[i].name));
        size_t of = 0;
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

/* NULL: none has reported. */
static const struct result_record *newest_of(const struct job_list *jobs, struct str delivery)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (str_eq(str_of(jobs->at[i].delivery_id), delivery))
            return &jobs->at[i];
    return NULL;
}

/* The newest check run of that job; of L3 and L4 alone. */
static enum err check_put(struct redis *r, const struct result_record *job, struct buf *to,
                          struct why *why)
{
    struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
    struct buf CLEANUP(buf_clear) name = BUF_INIT(REPO_MAX + 2 * NAME_MAX_BYTES + 8);
    struct check_sent newest = { .id = 0 };
    enum err err = OK;
    if (job && job->level >= 3 && job->head_sha) {
        check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
        err = checks_sent_list(r, str_of(job->head_sha), buf_str(&name), &list, why);
    }
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].sent.id > newest.id)
            newest = list.at[i].sent;
    json_put_number(to, "check_run_id", newest.id ? newest.id : -1);
    json_put_string(to, "check_run_state", newest.state);
    return err;
}

static enum err event_put(struct redis *r, const struct dispatch_view *d, struct str delivery,
                          const struct job_list *jobs, struct buf *to, struct why *why)
{
    const struct result_record *job = newest_of(jobs, delivery);
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
    json_put_bool(to, "reported", job);
    enum err err = check_put(r, job, to, why);
    buf_putc(to, '}');
    return err;
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
            err = event_put(w->redis, &d, str_of(newest.at[0].name), jobs, to, why);
    }
    return err;
}

static void tests_put(struct buf *to, const char *failed_tests)
{
    json_t *rows = failed_tests ? json_loads(failed_tests, 0, NULL) : NULL;
    json_put_begin(to, "tests", '[');
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        json_put_begin(to, NULL, '{');
        json_put_text(to, "classname", json_member(row, "classname"));
        json_put_text(to, "name", json_member(row, "name"));
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
    json_decref(rows);
}

/* The newest failures since from_ms, so that a page can say what fails most. */
static enum err failures_put(struct redis *r, const struct job_list *jobs, int64_t from_ms,
                             struct buf *to, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) failed = { NULL, 0 };
    struct job_list recent = { jobs->at, 0 };
    while (recent.n < jobs->n && recent.at[recent.n].last_ms >= from_ms)
        recent.n++;
    enum err err = jobs_failed_in_full(r, &recent, FAILURES, &failed, why);
    for (size_t i = 0; i < failed.n; i++) {
        if (!job_has_failed(&failed.at[i])) /* tests of it did */
            continue;
        json_put_begin(to, NULL, '{');
        json_put_string(to, "workflow_name", failed.at[i].workflow_name);
        json_put_string(to, "job_name", failed.at[i].job_name);
        json_put_string(to, "delivery_id", failed.at[i].delivery_id);
        tests_put(to, failed.at[i].failed_tests);
        buf_putc(to, '}');
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
    if (!err && before_ms == 0) /* the first page shows them, and the next */
        err = events_put(w, ask->id, jobs, to, why);
    buf_putc(to, ']');
    json_put_begin(to, "failures", '[');
    if (!err && before_ms == 0 && window.n > 0)
        err = failures_put(w->redis, jobs, window.at[0].at_ms, to, why);
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

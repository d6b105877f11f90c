/* The newest events that a back end got: of each of the newest pull requests the newest delivery,
 * what GitHub answered to its dispatch, and whether a job reported on it. For a vendor without
 * access to the relay: it says what `crcrctl probe` says. */
#include "../../common/base/json_put.h"
#include "../../common/model/ids.h"
#include "../../common/view/dispatches.h"
#include "paths.h"

#define EVENT_PRS 50 /* that are looked at */

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

enum err repo_events_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                          bool *known, struct why *why)
{
    const struct job_list *jobs;
    struct pr_list *list;
    size_t shown = 0;
    enum err err = lists_jobs(w->lists, w->redis, ask->id, &jobs, why);
    if (!err)
        err = lists_prs(w->lists, w->redis, &list, why);
    buf_puts(to, "{\"events\":[");
    for (size_t i = 0; !err && i < list->prs.n && i < EVENT_PRS; i++) {
        struct view_index CLEANUP(view_index_clear) newest = { NULL, 0 };
        struct dispatch_view d;
        bool found = false;
        err = deliveries_of_pr(w->redis, pr_number(str_of(list->prs.at[i].name)), 1, &newest, why);
        if (!err && newest.n > 0)
            err = dispatch_view_get(w->redis, str_of(newest.at[0].name), ask->id, &found, &d, why);
        if (!err && found)
            event_put(to, &d, str_of(newest.at[0].name), jobs);
        shown += found;
    }
    buf_putc(to, ']');
    *known = !err && (shown > 0 || jobs->n > 0);
    json_put_time(to, "last_report_at", *known && jobs->n > 0 ? jobs->at[0].last_ms : 0);
    buf_putc(to, '}');
    return err;
}

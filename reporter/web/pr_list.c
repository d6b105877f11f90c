/* The list of pull requests: the newest 25 of those that are asked for. With a state it looks at
 * 100 at most, so that there may be fewer, and more behind "before". */
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "../aggregate.h"
#include "api.h"
#include "paths.h"

#define PAGE_PRS      25
#define PR_DELIVERIES 5   /* among which one with jobs is looked for */
#define PR_JOBS       400 /* of that */
#define LOOKS         100 /* pull requests whose jobs are read for one answer */

/* What is asked for. */
struct pr_query {
    struct str text;   /* in number, title or author, in any case; empty: all */
    struct str state;  /* failing, running or passing, as state_of says; or all */
    struct str before; /* "before" of an answer: those that come behind it; empty: all */
};

static bool holds(struct str text, struct str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (str_eq_nocase((struct str){ text.ptr + i, part.len }, part))
            return true;
    return false;
}

/* before is "<ms>-<number>". The list is by time, and within a millisecond by the number as text.
 */
static bool is_behind(const struct view_index_entry *pr, struct str before)
{
    struct str ms;
    int64_t before_ms;
    if (!str_split(&before, '-', &ms) || !str_to_i64(ms, &before_ms))
        return true;
    return pr->at_ms < before_ms ||
           (pr->at_ms == before_ms && before.ptr && str_cmp(str_of(pr->name), before) < 0);
}

static bool is_wanted(const struct pr_query *query, const struct view_index_entry *pr,
                      const struct pr_text *text)
{
    if (!is_behind(pr, query->before))
        return false;
    return !query->text.len || holds(str_of(pr->name), query->text) ||
           holds(str_of(text->title), query->text) || holds(str_of(text->author), query->text);
}

/* The jobs that stand for a pull request, and their delivery: the newest with jobs of its newest
 * commit. (Closing it makes a delivery, too, mostly without jobs.) Otherwise the newest delivery.
 */
static enum err jobs_find(struct redis *r, const struct view_index *deliveries,
                          const char *head_sha, struct str *delivery, struct job_list *jobs,
                          struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < deliveries->n && jobs->n == 0; i++) {
        struct str id = str_of(deliveries->at[i].name);
        job_list_clear(jobs);
        err = jobs_of_delivery(r, id, PR_JOBS, 0, jobs, why);
        if (i > 0 && jobs->n > 0 &&
            (result_record_is_self(&jobs->at[0]) ||
             !str_is(str_of(jobs->at[0].head_sha), head_sha))) {
            job_list_clear(jobs);
            break;
        }
        if (i == 0 || jobs->n > 0)
            *delivery = id;
    }
    return err;
}

/* Which back ends at L3 and L4 were dispatched to and have not reported in time: their check runs
 * are timed out (aggregate.c, by_dispatch). Closing a pull request has no check run. */
static enum err silent_find(const struct web_view *w, const struct api_delivery *shown,
                            bool *silent, struct why *why)
{
    const int64_t before_ms = clock_wall_ms() - w->reporter->times.overdue_ms;
    enum err err = OK;
    for (size_t i = 0; !err && i < shown->n_dispatches; i++) {
        const struct dispatch_view *d = &shown->dispatches[i];
        struct str repo = str_of(d->repo);
        struct dispatch_view head = { .dispatched_ms = 0 };
        bool found;
        if (shown->n_jobs > 0 && !strcmp(d->action, "closed"))
            continue; /* it may have reported on another delivery, which is not looked at */
        if (d->level < 3 || score_of_downstream(shown->jobs, shown->n_jobs, repo).jobs > 0)
            continue;
        err = dispatch_of_head(w->redis, str_of(d->head_sha), repo, &found, &head, why);
        silent[i] = head.dispatched_ms > 0 && head.dispatched_ms <= before_ms;
    }
    return err;
}

/* The state, from the jobs of all downstreams that count; at L3 and L4 also from those that
 * reported nothing: silent, or not reached. If there are more than were read, it is not known that
 * they pass. */
static const char *state_of(const struct api_delivery *shown)
{
    struct jobs_score score = score_of_downstream(shown->jobs, shown->n_jobs, STR_NONE);
    for (size_t i = 0; i < shown->n_dispatches; i++) {
        const struct dispatch_view *d = &shown->dispatches[i];
        bool refused = d->level >= 3 && !strcmp(d->outcome, outcome_kind_name(OUTCOME_FAILED)) &&
                       !score_of_downstream(shown->jobs, shown->n_jobs, str_of(d->repo)).jobs;
        score.failed += shown->silent[i] || refused;
    }
    return score.failed                      ? "failing"
           : score.running                   ? "running"
           : score.jobs && !shown->more_jobs ? "passing"
                                             : "none";
}

static enum err row_read(const struct web_view *w, const struct view_index_entry *pr,
                         const struct pr_text *text, struct pr_row *row, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    struct api_delivery shown = { .id = STR_NONE };
    int64_t number = 0;
    (void)str_to_i64(str_of(pr->name), &number);
    enum err err = deliveries_of_pr(w->redis, number, PR_DELIVERIES, &deliveries, why);
    if (!err)
        err = jobs_find(w->redis, &deliveries, text->head_sha, &shown.id, &jobs, why);
    if (!err && shown.id.ptr)
        err = dispatches_of_delivery(w->redis, shown.id, PR_JOBS, &dispatches, &shown.n_dispatches,
                                     why);
    jobs_mark_replaced(jobs.at, jobs.n);
    bool *silent = mem_alloc(shown.n_dispatches + 1, sizeof(*silent));
    shown.jobs = jobs.at;
    shown.n_jobs = jobs.n;
    shown.more_jobs = jobs.n >= PR_JOBS;
    shown.dispatches = dispatches;
    shown.silent = silent;
    if (!err && !shown.more_jobs) /* else they may have reported all the same */
        err = silent_find(w, &shown, silent, why);
    if (!err) {
        api_put_pr(&row->json, number, pr->at_ms, text, &shown);
        row->state = state_of(&shown);
    }
    free(dispatches);
    free(silent);
    return err;
}

enum err prs_page(const struct web_view *w, const struct path_ask *ask, struct buf *to, bool *known,
                  struct why *why)
{
    const struct pr_query query = { ask->params[0], ask->params[1], ask->params[2] };
    struct pr_list *list;
    size_t shown = 0, looks = 0, i = 0;
    enum err err = lists_prs(w->lists, w->redis, &list, why);
    const struct view_index_entry *pr = list->prs.at;
    *known = true;
    buf_puts(to, "{\"prs\":[");
    for (; !err && i < list->prs.n && shown < PAGE_PRS && looks < LOOKS; i++) {
        struct pr_row *row = &list->rows[i];
        if (!is_wanted(&query, &pr[i], &list->texts[i]))
            continue;
        if (!row->state)
            err = row_read(w, &pr[i], &list->texts[i], row, why);
        looks++;
        if (err || !(str_is(query.state, "all") || str_is(query.state, row->state)))
            continue;
        json_put_comma(to);
        buf_put(to, buf_str(&row->json));
        shown++;
    }
    buf_puts(to, "],\"before\":");
    if (i > 0 && i < list->prs.n)
        buf_printf(to, "\"%lld-%s\"}", (long long)pr[i - 1].at_ms, pr[i - 1].name);
    else
        buf_puts(to, "null}");
    return err;
}

/* The list of pull requests: the newest 25 of those that are asked for. With a state it looks at
 * 100 at most, so that there may be fewer, and more behind "before". */
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "../../common/model/known_failure.h"
#include "../aggregate.h"
#include "api.h"
#include "paths.h"

#define PAGE_PRS      25
#define PR_DELIVERIES 5   /* among which one with jobs is looked for */
#define PR_JOBS       400 /* of that */
#define LOOKS         100 /* pull requests whose jobs are read for one answer */

#define SHA_MIN 7 /* characters of a commit that is looked for */

/* What is asked for. */
struct pr_query {
    struct str text;   /* in number, title or author, in any case, or a commit; empty: all */
    struct str state;  /* failing, running or passing, as state_of says; or all */
    struct str before; /* "before" of an answer: those that come behind it; empty: all */
    struct str repo;   /* in the name of a back end; empty: any */
    struct str level;  /* of a back end, in lower case; or all */
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
    if (query->text.len >= SHA_MIN &&
        str_eq_nocase(str_cut(str_of(text->head_sha), query->text.len), query->text))
        return true;
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

/* With CRCR_KNOWN_FAILURES=neutral a failure that main has too is neutral at L4, as in the
 * aggregate. */
static enum err known_forgive(const struct web_view *w, struct job_list *jobs, struct why *why)
{
    enum err err = w->reporter->known_neutral ? lists_known(w->lists, w->redis, jobs, why) : OK;
    for (size_t i = 0; !err && i < jobs->n; i++) {
        struct result_record *job = &jobs->at[i];
        if (job->level < 4 || !job->known || job->known->reason != KNOWN_MAIN)
            continue;
        result_record_set(job, STR_LIT("status"), STR_LIT("completed"));
        result_record_set(job, STR_LIT("conclusion"), STR_LIT("neutral"));
    }
    return err;
}

/* Which back ends have never reported. At L3 and L4 it goes by the dispatch that the check run of
 * the commit is about. */
static enum err silent_find(const struct web_view *w, const struct api_delivery *shown,
                            bool *silent, struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < shown->n_dispatches; i++) {
        const struct dispatch_view *d = &shown->dispatches[i];
        struct str repo = str_of(d->repo);
        size_t n = score_of_downstream(shown->jobs, shown->n_jobs, repo).jobs;
        struct dispatch_view head = *d;
        bool found;
        if (n > 0 || (shown->n_jobs > 0 && !strcmp(d->action, "closed")))
            continue; /* it may have reported on another delivery, which is not looked at */
        if (d->level >= 3)
            err = dispatch_of_head(w->redis, str_of(d->head_sha), repo, &found, &head, why);
        silent[i] = dispatch_never_reported(&head, n, w->reporter->times.overdue_ms, shown->now_ms);
    }
    return err;
}

/* Notes how one back end does: by its jobs that count, at L3 and L4 also by who reported nothing:
 * silent, or not reached. d: its dispatch, or NULL. */
static void part_add(struct pr_row *row, const struct api_delivery *shown, const char *repo,
                     int64_t level, const struct dispatch_view *d)
{
    struct jobs_score score = score_of_downstream(shown->jobs, shown->n_jobs, str_of(repo));
    bool silent = d && shown->silent[d - shown->dispatches];
    bool refused = d && !score.jobs && !strcmp(d->outcome, outcome_kind_name(OUTCOME_FAILED));
    for (size_t i = 0; i < row->n; i++)
        if (str_eq_nocase(str_of(row->parts[i].repo), str_of(repo)))
            return;
    row->parts = mem_resize(row->parts, row->n + 1, sizeof(*row->parts));
    struct pr_part *part = &row->parts[row->n++];
    str_copy(part->repo, sizeof(part->repo), str_of(repo));
    part->level = level;
    part->failed = score.failed > 0 || (level >= 3 && (refused || silent));
    part->running = score.running > 0;
    part->ended = score.jobs > 0;
}

static bool is_asked(const struct pr_query *query, const struct pr_part *part)
{
    const char *name = level_name((int)part->level);
    return holds(str_of(part->repo), query->repo) &&
           (str_is(query->level, "all") || (name && str_eq_nocase(query->level, str_of(name))));
}

/* Of the back ends that are asked for; NULL: there is none of them. Of more jobs than were read
 * nobody knows that they pass. */
static const char *state_of(const struct pr_row *row, const struct pr_query *query)
{
    bool failed = false, running = false, ended = false, any = false;
    for (size_t i = 0; i < row->n; i++) {
        const struct pr_part *part = &row->parts[i];
        if (!is_asked(query, part))
            continue;
        any = true;
        failed |= part->failed;
        running |= part->running;
        ended |= part->ended;
    }
    return !any && (query->repo.len || !str_is(query->level, "all")) ? NULL
           : failed                                                  ? "failing"
           : running                                                 ? "running"
           : ended && !row->more_jobs                                ? "passing"
                                                                     : "none";
}

static enum err row_read(const struct web_view *w, const struct view_index_entry *pr,
                         const struct pr_text *text, struct pr_row *row, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    struct api_delivery shown = { .id = STR_NONE, .now_ms = clock_wall_ms() };
    int64_t number = pr_number(str_of(pr->name));
    enum err err = deliveries_of_pr(w->redis, number, PR_DELIVERIES, &deliveries, why);
    if (!err)
        err = jobs_find(w->redis, &deliveries, text->head_sha, &shown.id, &jobs, why);
    if (!err && shown.id.ptr)
        err = dispatches_of_delivery(w->redis, shown.id, PR_JOBS, &dispatches, &shown.n_dispatches,
                                     why);
    jobs_mark_replaced(jobs.at, jobs.n);
    if (!err)
        err = known_forgive(w, &jobs, why);
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
        row->more_jobs = shown.more_jobs;
        for (size_t i = 0; i < shown.n_dispatches; i++)
            part_add(row, &shown, dispatches[i].repo, dispatches[i].level, &dispatches[i]);
        for (size_t i = 0; i < shown.n_jobs; i++)
            part_add(row, &shown, shown.jobs[i].repo, shown.jobs[i].level, NULL);
        row->read = true;
    }
    free(dispatches);
    free(silent);
    return err;
}

enum err prs_page(const struct web_view *w, const struct path_ask *ask, struct buf *to, bool *known,
                  struct why *why)
{
    const struct pr_query query = { ask->params[0], ask->params[1], ask->params[2], ask->params[3],
                                    ask->params[4] };
    bool filtered = !str_is(query.state, "all") || query.repo.len || !str_is(query.level, "all");
    struct pr_list *list;
    size_t shown = 0, looks = 0, total = 0, i = 0;
    enum err err = lists_prs(w->lists, w->redis, &list, why);
    const struct view_index_entry *pr = list->prs.at;
    *known = true;
    for (size_t k = 0; !err && k < list->prs.n; k++)
        total += is_wanted(&query, &list->prs.at[k], &list->texts[k]);
    buf_putc(to, '{');
    json_put_number(to, "total", filtered ? -1 : (int64_t)total); /* else not all are looked at */
    buf_puts(to, ",\"prs\":[");
    for (; !err && i < list->prs.n && shown < PAGE_PRS && looks < LOOKS; i++) {
        struct pr_row *row = &list->rows[i];
        if (!is_behind(&pr[i], query.before) || !is_wanted(&query, &pr[i], &list->texts[i]))
            continue;
        if (!row->read)
            err = row_read(w, &pr[i], &list->texts[i], row, why);
        looks++;
        const char *state = err ? NULL : state_of(row, &query);
        if (!state || !(str_is(query.state, "all") || str_is(query.state, state)))
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

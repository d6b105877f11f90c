/* The list of pull requests: the newest 25 of those that are asked for. With a state it looks at
 * 100 at most, so that there may be fewer, and more behind "before". */
#include <stdlib.h>

#include "../../common/base/mem.h"
#include "api.h"
#include "paths.h"

#define PAGE_PRS 25
#define PR_JOBS  400 /* of the newest delivery */
#define LOOKS    100 /* pull requests whose jobs are read for one answer */

/* What is asked for. */
struct pr_query {
    struct str text; /* in number, title or author, in any case; empty: all */
    struct str
        state; /* failing (a job failed), else running (one runs), else passing; empty: all */
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

/* By the newest attempts of all downstreams. */
static const char *state_of(const struct api_delivery *newest)
{
    struct jobs_score score = score_of_downstream(newest->jobs, newest->n_jobs, STR_NONE);
    return score.failed ? "failing" : score.running ? "running" : score.jobs ? "passing" : "none";
}

/* *put: it is in that state, and was appended. */
static enum err pr_put(struct redis *r, const struct view_index_entry *pr,
                       const struct pr_text *text, struct str state, struct buf *to, bool *put,
                       struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    struct api_delivery newest = { .id = STR_NONE };
    int64_t number = 0;
    (void)str_to_i64(str_of(pr->name), &number);
    enum err err = deliveries_of_pr(r, number, 1, &deliveries, why);
    if (!err && deliveries.n > 0) {
        newest.id = str_of(deliveries.at[0].name);
        err = jobs_of_delivery(r, newest.id, PR_JOBS, 0, &jobs, why);
        if (!err)
            err = dispatches_of_delivery(r, newest.id, PR_JOBS, &dispatches, &newest.n_dispatches,
                                         why);
    }
    if (err)
        return err;
    newest.jobs = jobs.at;
    newest.n_jobs = jobs.n;
    newest.dispatches = dispatches;
    *put = !state.len || str_is(state, state_of(&newest));
    if (*put)
        api_put_pr(to, number, pr->at_ms, text, &newest);
    free(dispatches);
    return OK;
}

enum err prs_page(const struct web_view *w, const struct path_ask *ask, struct buf *to, bool *known,
                  struct why *why)
{
    const struct pr_query query = { ask->params[0], ask->params[1], ask->params[2] };
    struct view_index CLEANUP(view_index_clear) prs = { NULL, 0 };
    enum err err = prs_by_activity(w->redis, PRS_MAX, &prs, why);
    *known = true;
    if (err)
        return err;
    struct pr_text *texts = mem_alloc(prs.n + 1, sizeof(*texts));
    size_t shown = 0, looks = 0, i = 0;
    err = pr_texts_get(w->redis, &prs, texts, why);
    buf_puts(to, "{\"prs\":[");
    for (; !err && i < prs.n && shown < PAGE_PRS && looks < LOOKS; i++) {
        bool put = false;
        if (!is_wanted(&query, &prs.at[i], &texts[i]))
            continue;
        err = pr_put(w->redis, &prs.at[i], &texts[i], query.state, to, &put, why);
        shown += put;
        looks++;
    }
    buf_puts(to, "],\"before\":");
    if (i > 0 && i < prs.n)
        buf_printf(to, "\"%lld-%s\"}", (long long)prs.at[i - 1].at_ms, prs.at[i - 1].name);
    else
        buf_puts(to, "null}");
    free(texts);
    return err;
}

#include "pr_list.h"

#include <ctype.h>
#include <stdlib.h>

#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "api.h"

#define PAGE_PRS 25
#define PR_JOBS  400 /* of the newest delivery */

static bool holds(struct str text, struct str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (str_eq_nocase((struct str){ text.ptr + i, part.len }, part))
            return true;
    return false;
}

static bool is_wanted(const struct pr_query *query, const struct view_index_entry *pr,
                      const struct pr_text *text)
{
    if (query->before_ms > 0 && pr->at_ms >= query->before_ms)
        return false;
    return !query->text.len || holds(str_of(pr->name), query->text) ||
           holds(str_of(text->title), query->text) || holds(str_of(text->author), query->text);
}

static enum err pr_put(struct redis *r, const struct view_index_entry *pr,
                       const struct pr_text *text, struct buf *to, struct why *why)
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
    api_put_pr(to, number, pr->at_ms, text, &newest);
    free(dispatches);
    return OK;
}

enum err pr_list_put(struct redis *r, const struct pr_query *query, struct buf *to, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) prs = { NULL, 0 };
    enum err err = prs_by_activity(r, PRS_MAX, &prs, why);
    if (err)
        return err;
    struct pr_text *texts = mem_alloc(prs.n + 1, sizeof(*texts));
    size_t shown = 0, i = 0;
    int64_t last_ms = 0;
    err = pr_texts_get(r, &prs, texts, why);
    buf_puts(to, "{\"prs\":[");
    for (; !err && i < prs.n && shown < PAGE_PRS; i++) {
        if (!is_wanted(query, &prs.at[i], &texts[i]))
            continue;
        err = pr_put(r, &prs.at[i], &texts[i], to, why);
        last_ms = prs.at[i].at_ms;
        shown++;
    }
    buf_puts(to, "]");
    json_put_number(to, "before", i < prs.n && shown ? last_ms : -1);
    buf_putc(to, '}');
    free(texts);
    return err;
}

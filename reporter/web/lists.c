#include "lists.h"

#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/view/known_failures.h"
#include "../aggregate.h"

#define FRESH_MS 2000
#define KEPT     8           /* downstreams; 2 MB each */
#define ROW_MAX  (16u << 20) /* as an answer (live.c), which is too large then */

struct lists {
    struct kept {
        char *repo;
        int64_t read_ms; /* monotonic; 0: never */
        struct job_list jobs;
    } of_repo[KEPT];
    struct pr_list prs;
    struct known_cache known;
};

static bool is_fresh(int64_t read_ms)
{
    return read_ms && clock_mono_ms() - read_ms < FRESH_MS;
}

static void kept_clear(struct kept *k)
{
    free(k->repo);
    job_list_clear(&k->jobs);
    *k = (struct kept){ .repo = NULL };
}

static void prs_clear(struct pr_list *l)
{
    for (size_t i = 0; i < l->prs.n; i++)
        buf_clear(&l->rows[i].json), free(l->rows[i].parts);
    free(l->rows);
    free(l->texts);
    view_index_clear(&l->prs);
    *l = (struct pr_list){ .read_ms = 0 };
}

struct lists *lists_new(void)
{
    return mem_alloc(1, sizeof(struct lists));
}

void lists_free(struct lists *l)
{
    for (size_t i = 0; l && i < KEPT; i++)
        kept_clear(&l->of_repo[i]);
    if (l) {
        prs_clear(&l->prs);
        known_cache_clear(&l->known);
    }
    free(l);
}

enum err lists_jobs(struct lists *l, struct redis *r, struct str repo, const struct job_list **ret,
                    struct why *why)
{
    struct kept *to = &l->of_repo[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept *k = &l->of_repo[i];
        if (is_fresh(k->read_ms) && str_eq_nocase(str_of(k->repo), repo)) {
            *ret = &k->jobs;
            return OK;
        }
        to = k->read_ms < to->read_ms ? k : to;
    }
    kept_clear(to);
    enum err err = jobs_of_repo(r, repo, false, REPO_JOBS_MAX, &to->jobs, why);
    if (err)
        return err;
    jobs_mark_replaced(to->jobs.at, to->jobs.n);
    to->repo = str_dup(repo);
    to->read_ms = clock_mono_ms();
    *ret = &to->jobs;
    return OK;
}

enum err lists_known(struct lists *l, struct redis *r, struct job_list *jobs, struct why *why)
{
    return known_failures_mark(&l->known, r, jobs->at, jobs->n, why);
}

enum err lists_prs(struct lists *l, struct redis *r, struct pr_list **ret, struct why *why)
{
    *ret = &l->prs;
    if (is_fresh(l->prs.read_ms))
        return OK;
    prs_clear(&l->prs);
    enum err err = prs_by_activity(r, PRS_MAX, &l->prs.prs, why);
    size_t n = l->prs.prs.n;
    l->prs.texts = mem_alloc(n + 1, sizeof(*l->prs.texts));
    l->prs.rows = mem_alloc(n + 1, sizeof(*l->prs.rows));
    for (size_t i = 0; i < n; i++)
        buf_init(&l->prs.rows[i].json, ROW_MAX);
    if (!err)
        err = pr_texts_get(r, &l->prs.prs, l->prs.texts, why);
    l->prs.read_ms = err ? 0 : clock_mono_ms();
    return err;
}

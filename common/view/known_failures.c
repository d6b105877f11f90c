#include "known_failures.h"

#include <stdlib.h>

#include "../base/clock.h"
#include "../model/known_failure.h"
#include "../model/which_jobs.h"
#include "commits.h"
#include "jobs.h"

#define FRESH_MS 2000

/* One downstream. */
struct kept {
    int64_t read_ms; /* monotonic */
    struct known_failures *all;
};

/* Forgets what was read before. */
static void forget(struct known_cache *cache, int64_t before_ms)
{
    for (struct kept *k = table_next(&cache->repos, NULL), *next; k; k = next) {
        next = table_next(&cache->repos, k);
        if (k->read_ms >= before_ms)
            continue;
        known_failures_free(k->all);
        table_remove(&cache->repos, k);
    }
}

void known_cache_clear(struct known_cache *cache)
{
    forget(cache, INT64_MAX);
}

static enum err read_one(struct redis *r, struct str repo, struct known_failures **ret,
                         struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct main_list CLEANUP(main_list_clear) main = { NULL, 0 };
    enum err err = jobs_of_repo(r, repo, false, REPO_JOBS_MAX, &jobs, why);
    if (!err)
        err = main_commits_get(r, &main, why);
    if (err)
        return err;
    jobs_mark_replaced(jobs.at, jobs.n);
    *ret = known_failures_new(jobs.at, jobs.n, &main);
    return OK;
}

enum err known_failures_mark(struct known_cache *cache, struct redis *r, struct result_record *jobs,
                             size_t n, struct why *why)
{
    cache->repos.size = sizeof(struct kept);
    forget(cache, clock_mono_ms() - FRESH_MS);
    for (size_t i = 0; i < n; i++) {
        struct str repo = str_of(jobs[i].repo);
        struct known_failures *all;
        if (!known_failure_applies(&jobs[i]))
            continue;
        struct kept *k = table_get(&cache->repos, repo);
        if (!k) {
            enum err err = read_one(r, repo, &all, why);
            if (err)
                return err;
            k = table_make(&cache->repos, repo);
            *k = (struct kept){ clock_mono_ms(), all };
        }
        free(jobs[i].known);
        jobs[i].known = known_failure_new(k->all, &jobs[i]);
    }
    return OK;
}

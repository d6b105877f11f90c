#include "since.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../aggregate.h"

/* One result of one job, with the commit that it ran on. */
struct seen {
    const struct result_record *job;
    const char *sha;
    const struct main_commit *main; /* NULL: not in the list */
    int64_t at_ms;                  /* as since_commit */
    bool green, self, of_main;
};

/* ---- what counts ----------------------------------------------------------------------------- */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static bool same_commit(const struct seen *x, const struct seen *y)
{
    return strcmp(x->sha, y->sha) == 0;
}

/* A run that the downstream starts itself names the commit as its delivery. */
static const char *commit_of(const struct result_record *job)
{
    if (job->head_sha && *job->head_sha)
        return job->head_sha;
    bool self = result_record_is_self(job) && sha_valid(str_of(job->delivery_id));
    return self ? job->delivery_id : NULL;
}

static bool has_failed(const struct result_record *job)
{
    const char *conclusion = job_conclusion(job);
    return conclusion && !result_record_is_successful(job) &&
           (strcmp(conclusion, "failure") == 0 || strcmp(conclusion, "timed_out") == 0);
}

static const struct main_commit *in_main(const struct main_list *main, const char *sha)
{
    for (size_t i = 0; i < main->n; i++)
        if (strcmp(main->at[i].commit.sha, sha) == 0)
            return &main->at[i];
    return NULL;
}

static int by_sha(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int order = strcmp(x->sha, y->sha);
    return order ? order : (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* The results that say something, each with the place of its commit on main, or else the time of
 * the commit's first report; gives how many. */
static size_t seen_fill(const struct result_record *jobs, size_t n, const struct main_list *main,
                        struct seen *to)
{
    int64_t oldest_ms = main->n > 0 ? main->at[main->n - 1].pushed_ms : INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool green = result_record_is_successful(&jobs[i]);
        const char *sha = commit_of(&jobs[i]);
        if (sha && (green || has_failed(&jobs[i])))
            to[kept++] = (struct seen){ .job = &jobs[i],
                                        .sha = sha,
                                        .at_ms = job_first_ms(&jobs[i]),
                                        .green = green,
                                        .self = result_record_is_self(&jobs[i]) };
    }
    qsort(to, kept, sizeof(*to), by_sha);
    for (size_t i = 0; i < kept; i++) {
        struct seen *one = &to[i], *last = i > 0 && same_commit(&to[i - 1], one) ? one - 1 : NULL;
        one->main = last ? last->main : in_main(main, one->sha);
        one->at_ms = one->main ? one->main->pushed_ms : last ? last->at_ms : one->at_ms;
        bool push = strcmp(text_of(one->job->event_type), "push") == 0 && one->job->pr_number <= 0;
        one->of_main = one->self || one->main || (push && one->at_ms < oldest_ms);
    }
    return kept;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_name(const struct seen *x, const struct seen *y)
{
    int order = x->self - y->self;
    if (!order)
        order = strcmp(text_of(x->job->workflow_name), text_of(y->job->workflow_name));
    return order ? order : strcmp(text_of(x->job->job_name), text_of(y->job->job_name));
}

/* Newest first. Two commits of the list are in its order, which is also that of their times. */
static int by_commit(const struct seen *x, const struct seen *y)
{
    if (x->at_ms != y->at_ms)
        return x->at_ms > y->at_ms ? -1 : 1;
    if (x->main != y->main)
        return x->main < y->main ? -1 : 1; /* NULL, or places in one array */
    return strcmp(x->sha, y->sha);
}

static int by_name_and_commit(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int order = by_name(x, y);
    if (!order)
        order = by_commit(x, y);
    return order ? order
                 : (job_last_ms(x->job) < job_last_ms(y->job)) -
                       (job_last_ms(x->job) > job_last_ms(y->job));
}

static int by_kind_and_commit(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->self != y->self ? x->self - y->self : by_commit(x, y);
}

/* The commit that seen[*at] is of; *at moves past its results. end: of the job's. */
static struct since_commit commit_next(const struct seen *seen, size_t *at, size_t end)
{
    const struct seen *first = &seen[*at];
    struct since_commit commit = { first->sha, first->main, first->at_ms, NULL, NULL };
    for (; *at < end && same_commit(first, &seen[*at]); (*at)++) {
        const struct result_record **of = seen[*at].green ? &commit.green : &commit.red;
        if (!*of)
            *of = seen[*at].job;
    }
    return commit;
}

static size_t end_of_job(const struct seen *seen, size_t at, size_t n)
{
    size_t end = at + 1;
    while (end < n && by_name(&seen[at], &seen[end]) == 0)
        end++;
    return end;
}

/* ---- since when ------------------------------------------------------------------------------ */

/* The next commit of main. */
static bool main_next(const struct seen *seen, size_t *at, size_t end, struct since_commit *ret)
{
    for (bool of_main; *at < end;) {
        of_main = seen[*at].of_main;
        *ret = commit_next(seen, at, end);
        if (of_main)
            return true;
    }
    return false;
}

static void between_find(struct since_row *row, const struct main_list *main)
{
    if (!row->first_red.main || !row->last_green.main)
        return;
    row->between = row->first_red.main;
    row->n_between = (size_t)(row->last_green.main - row->first_red.main);
    size_t first = (size_t)(row->between - main->at);
    for (size_t i = first; i < first + row->n_between; i++)
        row->gap |= strcmp(main->at[i].commit.parent, main->at[i + 1].commit.sha) != 0;
}

/* False when it does not fail. */
static bool row_read(const struct seen *seen, size_t at, size_t end, const struct main_list *main,
                     struct since_row *row)
{
    struct since_commit commit;
    *row = (struct since_row){ .failing = 0 };
    while (main_next(seen, &at, end, &commit)) {
        if (commit.red && (!commit.green || !row->failing)) {
            row->first_red = commit;
            row->failing++;
        }
        if (commit.green) {
            row->last_green = commit;
            row->flaky = !!commit.red;
            break;
        }
    }
    between_find(row, main);
    return row->failing > 0;
}

/* kinds: by_kind_and_commit. */
static size_t newer_commits(const struct seen *kinds, size_t n, const struct seen *than)
{
    size_t newer = 0;
    for (size_t i = 0; i < n; i++)
        newer += kinds[i].of_main && kinds[i].self == than->self &&
                 by_commit(&kinds[i], than) < 0 &&
                 (i == 0 || !same_commit(&kinds[i - 1], &kinds[i]));
    return newer;
}

static int longest_first(const void *a, const void *b)
{
    const struct since_row *x = a, *y = b;
    if (x->failing != y->failing)
        return x->failing > y->failing ? -1 : 1;
    return (x->first_red.at_ms > y->first_red.at_ms) - (x->first_red.at_ms < y->first_red.at_ms);
}

/* ---- flaky jobs ------------------------------------------------------------------------------ */

/* False when it is not flaky. */
static bool flaky_read(const struct seen *seen, size_t at, size_t end, struct flaky_row *row)
{
    *row = (struct flaky_row){ 0, 0, NULL, NULL };
    while (at < end) {
        struct since_commit commit = commit_next(seen, &at, end);
        row->commits++;
        if (!commit.green || !commit.red)
            continue;
        if (!row->flaky++) { /* the newest comes first */
            row->green = commit.green;
            row->red = commit.red;
        }
    }
    return row->flaky > 0;
}

static int flakiest_first(const void *a, const void *b)
{
    const struct flaky_row *x = a, *y = b;
    return (x->flaky < y->flaky) - (x->flaky > y->flaky);
}

/* ---- both ------------------------------------------------------------------------------------ */

void since_init(struct since *ret, const struct result_record *jobs, size_t n,
                const struct main_list *main)
{
    struct seen *seen = mem_alloc(n + 1, sizeof(*seen)), *kinds = mem_alloc(n + 1, sizeof(*kinds));
    size_t n_seen = seen_fill(jobs, n, main, seen), end;
    *ret = (struct since){ .failing = mem_alloc(n + 1, sizeof(*ret->failing)),
                           .flaky = mem_alloc(n + 1, sizeof(*ret->flaky)) };
    memcpy(kinds, seen, n_seen * sizeof(*seen));
    qsort(kinds, n_seen, sizeof(*kinds), by_kind_and_commit);
    qsort(seen, n_seen, sizeof(*seen), by_name_and_commit);
    for (size_t at = 0; at < n_seen; at = end) {
        end = end_of_job(seen, at, n_seen);
        ret->n_flaky += flaky_read(seen, at, end, &ret->flaky[ret->n_flaky]);
        while (at + 1 < end && !seen[at].of_main)
            at++;
        if (row_read(seen, at, end, main, &ret->failing[ret->n_failing]))
            ret->failing[ret->n_failing++].not_run = newer_commits(kinds, n_seen, &seen[at]);
    }
    qsort(ret->failing, ret->n_failing, sizeof(*ret->failing), longest_first);
    qsort(ret->flaky, ret->n_flaky, sizeof(*ret->flaky), flakiest_first);
    free(seen);
    free(kinds);
}

void since_clear(struct since *since)
{
    free(since->failing);
    free(since->flaky);
    *since = (struct since){ .failing = NULL };
}

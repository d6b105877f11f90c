#include "since.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/table.h"
#include "ids.h"
#include "which_jobs.h"

/* A commit that a job ran on. */
struct commit {
    const char *sha;                /* borrowed from a job; NULL: only the list has it */
    const struct main_commit *main; /* NULL: not in the list */
    int64_t at_ms;                  /* as since_commit */
    bool ran[2];                    /* jobs of main: of pushes; of nightly and periodic runs */
};
/* One result of one job. */
struct job_seen {
    const struct result_record *job;
    struct commit *commit;
    bool green, self, of_main;
};

/* ---- what counts ----------------------------------------------------------------------------- */

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* Keeps the results that count, with their commits; returns how many. */
static size_t seen_fill(const struct result_record *jobs, size_t n, const struct main_list *main,
                        struct table *commits, struct job_seen *to)
{
    int64_t oldest_ms = main->n > 0 ? main->at[main->n - 1].pushed_ms : INT64_MAX;
    size_t kept = 0;
    for (size_t i = main->n; i > 0; i--) { /* the newest last, should one be there twice */
        struct commit *commit = table_make(commits, str_of(main->at[i - 1].commit.sha));
        commit->main = &main->at[i - 1];
        commit->at_ms = commit->main->pushed_ms;
    }
    for (size_t i = 0; i < n; i++) {
        const struct result_record *job = &jobs[i];
        const char *sha = result_record_commit(job);
        bool green = result_record_is_successful(job);
        if (!sha || (!green && !job_has_failed(job)))
            continue;
        struct commit *commit = table_make(commits, str_of(sha));
        int64_t first_ms = job_first_ms(job);
        if (!commit->main && (!commit->sha || first_ms < commit->at_ms))
            commit->at_ms = first_ms;
        commit->sha = sha;
        to[kept++] = (struct job_seen){ job, commit, green, result_record_is_self(job), false };
    }
    for (struct job_seen *one = to; one < to + kept; one++) {
        struct commit *commit = one->commit;
        bool push =
            strcmp(text_or_empty(one->job->event_type), "push") == 0 && one->job->pr_number <= 0;
        one->of_main = one->self || commit->main || (push && commit->at_ms < oldest_ms);
        commit->ran[one->self] |= one->of_main;
    }
    return kept;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_name(const struct job_seen *x, const struct job_seen *y)
{
    int order = x->self - y->self;
    if (!order)
        order = strcmp(text_or_empty(x->job->workflow_name), text_or_empty(y->job->workflow_name));
    return order ? order : strcmp(text_or_empty(x->job->job_name), text_or_empty(y->job->job_name));
}

/* Newest first. Two commits of the list are in its order, which is also that of their times. */
static int by_commit(const struct commit *x, const struct commit *y)
{
    if (x->at_ms != y->at_ms)
        return x->at_ms > y->at_ms ? -1 : 1;
    if (x->main != y->main)
        return x->main < y->main ? -1 : 1; /* NULL, or elements of one array */
    return x == y ? 0 : strcmp(x->sha, y->sha);
}

static int by_name_and_commit(const void *a, const void *b)
{
    const struct job_seen *x = a, *y = b;
    int order = by_name(x, y);
    if (!order)
        order = by_commit(x->commit, y->commit);
    int64_t left = job_last_ms(x->job), right = job_last_ms(y->job);
    return order ? order : (left < right) - (left > right);
}

/* The commit of seen[*at]; moves *at past its results. end: of the job's results. */
static struct since_commit commit_next(const struct job_seen *seen, size_t *at, size_t end)
{
    const struct commit *of = seen[*at].commit;
    struct since_commit commit = { .sha = of->sha, .main = of->main, .at_ms = of->at_ms };
    for (; *at < end && seen[*at].commit == of; (*at)++) {
        bool green = seen[*at].green, counts = !seen[*at].job->replaced;
        const struct result_record **result = green ? &commit.green : &commit.red;
        if (!*result)
            *result = seen[*at].job;
        commit.succeeds |= green && counts;
        commit.fails |= !green && counts;
    }
    return commit;
}

static size_t end_of_job(const struct job_seen *seen, size_t at, size_t n)
{
    size_t end = at + 1;
    while (end < n && by_name(&seen[at], &seen[end]) == 0)
        end++;
    return end;
}

/* ---- since when ------------------------------------------------------------------------------ */

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

/* Commits that other jobs of its kind ran on, newer than that. */
static size_t newer_commits(const struct table *commits, const struct job_seen *than)
{
    size_t newer = 0;
    for (const struct commit *one = NULL; (one = table_next(commits, one));)
        newer += one->ran[than->self] && by_commit(one, than->commit) < 0;
    return newer;
}

/* False when it does not fail. */
static bool row_read(const struct job_seen *seen, size_t at, size_t end,
                     const struct main_list *main, const struct table *commits,
                     struct since_row *row)
{
    const struct job_seen *newest = NULL;
    *row = (struct since_row){ .failing = 0 };
    while (at < end) {
        const struct job_seen *first = &seen[at];
        struct since_commit commit = commit_next(seen, &at, end);
        if (!first->of_main)
            continue;
        newest = newest ? newest : first;
        if (row->n_strip < SINCE_STRIP)
            row->strip[row->n_strip++] = commit;
        if (row->last_green.sha)
            continue;
        if (commit.fails && (!commit.succeeds || !row->failing)) {
            row->first_red = commit;
            row->failing++;
        }
        if (commit.succeeds)
            row->last_green = commit;
        if (commit.succeeds || row->failing == 1)
            row->flaky |= commit.green && commit.red;
    }
    if (!row->failing)
        return false;
    row->not_run = newer_commits(commits, newest);
    between_find(row, main);
    return true;
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
static bool flaky_read(const struct job_seen *seen, size_t at, size_t end, struct flaky_row *row)
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
    struct job_seen *seen = mem_alloc(n + 1, sizeof(*seen));
    struct table commits = { .size = sizeof(struct commit) };
    size_t n_seen = seen_fill(jobs, n, main, &commits, seen), end;
    *ret = (struct since){ .failing = mem_alloc(n + 1, sizeof(*ret->failing)),
                           .flaky = mem_alloc(n + 1, sizeof(*ret->flaky)) };
    qsort(seen, n_seen, sizeof(*seen), by_name_and_commit);
    for (size_t at = 0; at < n_seen; at = end) {
        end = end_of_job(seen, at, n_seen);
        ret->n_flaky += flaky_read(seen, at, end, &ret->flaky[ret->n_flaky]);
        ret->n_failing += row_read(seen, at, end, main, &commits, &ret->failing[ret->n_failing]);
    }
    qsort(ret->failing, ret->n_failing, sizeof(*ret->failing), longest_first);
    qsort(ret->flaky, ret->n_flaky, sizeof(*ret->flaky), flakiest_first);
    table_clear(&commits);
    free(seen);
}

void since_clear(struct since *since)
{
    free(since->failing);
    free(since->flaky);
    *since = (struct since){ .failing = NULL };
}

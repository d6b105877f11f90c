/* Which jobs of a downstream fail on the upstream's main and since when, and which are flaky. */
#include "../../common/base/json_put.h"
#include "../../common/model/since.h"
#include "api.h"
#include "paths.h"

#define FLAKY_MAX  50
#define PUSHES_MAX 100 /* commits between, of each job */

static void main_put(struct buf *to, const struct main_commit *main)
{
    json_put_string(to, "sha", main->commit.sha);
    json_put_number(to, "pr_number", main->commit.pr > 0 ? main->commit.pr : -1);
    json_put_string(to, "title", main->commit.title);
    json_put_time(to, "at", main->pushed_ms);
}

static void result_put(struct buf *to, const char *name, const struct result_record *job)
{
    json_put_name(to, name);
    if (job)
        api_put_job(to, job);
    else
        buf_puts(to, "null");
}

static void commit_put(struct buf *to, const char *name, const struct since_commit *commit)
{
    struct main_commit unknown = { .pushed_ms = commit->at_ms };
    if (!commit->sha) {
        json_put_text(to, name, STR_NONE);
        return;
    }
    (void)str_copy(unknown.commit.sha, sizeof(unknown.commit.sha), str_of(commit->sha));
    json_put_begin(to, name, '{');
    main_put(to, commit->main ? commit->main : &unknown);
    json_put_bool(to, "order_known", !!commit->main);
    result_put(to, "success", commit->green);
    result_put(to, "failure", commit->red);
    buf_putc(to, '}');
}

/* Oldest first. */
static void strip_put(struct buf *to, const struct since_row *row)
{
    json_put_begin(to, "strip", '[');
    for (size_t i = row->n_strip; i-- > 0;) {
        const struct since_commit *one = &row->strip[i];
        const char *result = one->green && one->red ? "flaky" : one->green ? "success" : "failure";
        json_put_begin(to, NULL, '{');
        json_put_string(to, "sha", one->sha);
        json_put_time(to, "at", one->at_ms);
        json_put_string(to, "result", result);
        json_put_string(to, "delivery_id", (one->red ? one->red : one->green)->delivery_id);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

static void row_put(struct buf *to, const struct since_row *row)
{
    size_t n = row->n_between < PUSHES_MAX ? row->n_between : PUSHES_MAX;
    json_put_begin(to, NULL, '{');
    json_put_bool(to, "flaky", row->flaky);
    json_put_number(to, "failing_commits", (int64_t)row->failing);
    json_put_number(to, "not_run_commits", (int64_t)row->not_run);
    commit_put(to, "first_red", &row->first_red);
    commit_put(to, "last_green", &row->last_green);
    json_put_bool(to, "push_missing", row->gap);
    json_put_number(to, "n_commits", row->between ? (int64_t)row->n_between : -1);
    json_put_begin(to, "commits", '[');
    for (size_t i = 0; i < n; i++) {
        json_put_begin(to, NULL, '{');
        main_put(to, &row->between[i]);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
    strip_put(to, row);
    buf_putc(to, '}');
}

static void rows_put(struct buf *to, const struct since *since)
{
    json_put_begin(to, "failing", '[');
    for (size_t i = 0; i < since->n_failing; i++)
        row_put(to, &since->failing[i]);
    buf_putc(to, ']');
    json_put_begin(to, "flaky", '[');
    for (size_t i = 0; i < since->n_flaky && i < FLAKY_MAX; i++) {
        const struct flaky_row *row = &since->flaky[i];
        json_put_begin(to, NULL, '{');
        json_put_number(to, "commits", (int64_t)row->commits);
        json_put_number(to, "flaky_commits", (int64_t)row->flaky);
        result_put(to, "success", row->green);
        result_put(to, "failure", row->red);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

enum err since_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                    bool *known, struct why *why)
{
    const struct job_list *jobs;
    struct main_list CLEANUP(main_list_clear) main = { NULL, 0 };
    struct since since;
    enum err err = lists_jobs(w->lists, w->redis, ask->id, &jobs, why);
    *known = !err && jobs->n > 0;
    if (*known)
        err = main_commits_get(w->redis, &main, why);
    if (err || !*known)
        return err;
    buf_putc(to, '{');
    json_put_text(to, "repo", str_of(jobs->at[0].repo));
    json_put_string(to, "upstream_repo", w->reporter->upstream_repo);
    json_put_number(to, "jobs_seen", (int64_t)jobs->n);
    json_put_number(to, "main_commits", (int64_t)main.n);
    json_put_time(to, "main_from", main.n > 0 ? main.at[main.n - 1].pushed_ms : 0);
    since_init(&since, jobs->at, jobs->n, &main);
    rows_put(to, &since);
    since_clear(&since);
    buf_putc(to, '}');
    return OK;
}

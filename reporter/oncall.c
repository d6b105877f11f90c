#include "oncall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../common/model/attempt.h"
#include "check_text.h"

#define NAME_BYTES    200
#define SHA_SHOWN     10
#define ROW_MAX_BYTES 8192

/* ---- which jobs count ------------------------------------------------------------------------ */

static const char *const failures[] = { "failure", "cancelled", "timed_out" };

/* How it failed, in our words; NULL: it did not, or has not ended. */
static const char *failure_of(const struct result_record *job)
{
    const char *conclusion = result_record_conclusion(job);
    for (size_t i = 0; conclusion && i < sizeof(failures) / sizeof(failures[0]); i++)
        if (strcmp(conclusion, failures[i]) == 0)
            return failures[i];
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return str_eq(str_of(a), str_of(b));
}

/* One run has several jobs of one name where it is a matrix: none of them is newer. */
static bool is_newer(const struct result_record *a, const struct result_record *b)
{
    if (same(a->run_id, b->run_id))
        return attempt_compare(str_of(a->run_attempt), str_of(b->run_attempt)) > 0;
    return job_first_ms(a) > job_first_ms(b);
}

static bool is_outdone(const struct oncall_view *view, const struct result_record *job)
{
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *other = view->jobs[i].job;
        if (same(other->job_name, job->job_name) &&
            same(other->workflow_name, job->workflow_name) && is_newer(other, job))
            return true;
    }
    return false;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* A login, or organisation/team (https://docs.github.com/en/get-started/writing-on-github). */
static bool can_be_mentioned(struct str name)
{
    size_t slashes = 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        slashes += c == '/';
        if (!letter && c != '-' && c != '_' && (c != '/' || i == 0 || i + 1 == name.len))
            return false;
    }
    return name.len > 0 && slashes <= 1;
}

static void put_row(struct buf *to, const struct oncall_job *at)
{
    buf_puts(to, "| ");
    check_put_code(to, str_of(at->job->workflow_name), NAME_BYTES);
    buf_puts(to, " | ");
    check_put_code(to, str_of(at->job->job_name), NAME_BYTES);
    buf_printf(to, " | %s", failure_of(at->job));
    if (at->job->known) {
        buf_puts(to, " · ");
        check_put_known(to, at->job->known);
    }
    buf_puts(to, " | ");
    if (at->url && url_is_plain(str_of(at->url)) && str_find(str_of(at->url), '|') < 0)
        buf_printf(to, "[log](<%s>) ", at->url);
    buf_puts(to, "|\n");
}

static void put_failing(struct buf *to, const struct oncall_view *view, size_t failed)
{
    struct str sha = str_cut(view->head_sha, SHA_SHOWN);
    size_t shown = 0;
    buf_puts(to, "\n### ");
    check_put_code(to, view->repo, NAME_BYTES);
    buf_puts(to, " fails on this pull request\n\n");
    for (size_t i = 0; i < view->n_oncalls && i < ONCALL_MENTIONS_MAX; i++) {
        buf_puts(to, i > 0 ? ", " : "");
        if (can_be_mentioned(view->oncalls[i]))
            buf_printf(to, "@%.*s", STR_ARG(view->oncalls[i]));
        else
            check_put_code(to, view->oncalls[i], NAME_BYTES);
    }
    buf_printf(to, ": %zu job%s failed on `%.*s`.\n\n", failed, failed == 1 ? "" : "s",
               STR_ARG(sha));
    buf_puts(to, "| Workflow | Job | Conclusion | |\n|---|---|---|---|\n");
    for (size_t i = 0; i < view->n_jobs && shown < ONCALL_ROWS_MAX; i++) {
        struct buf row;
        if (!failure_of(view->jobs[i].job) || is_outdone(view, view->jobs[i].job))
            continue;
        buf_init(&row, ROW_MAX_BYTES);
        put_row(&row, &view->jobs[i]);
        if (!check_put_row(to, &row, ONCALL_TEXT_MAX / 2))
            break;
        shown++;
    }
    if (shown < failed)
        buf_printf(to, "\n… and %zu more.\n", failed - shown);
    buf_puts(to, "\nThis comment is kept up to date.\n");
}

/* The same on each later commit, so that it is written once. */
static void put_resolved(struct buf *to, const struct oncall_view *view)
{
    buf_puts(to, "\n### ");
    check_put_code(to, view->repo, NAME_BYTES);
    buf_puts(to, " no longer fails on this pull request\n\nResolved: the jobs that failed have "
                 "passed since, or newer commits do without them.\n");
}

void oncall_marker(struct str repo, struct buf *to)
{
    buf_printf(to, "<!-- crcr-oncall:%.*s -->", STR_ARG(repo));
}

enum oncall_word oncall_text(const struct oncall_view *view, struct buf *to)
{
    size_t failed = 0, running = 0, ended = 0;
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *job = view->jobs[i].job;
        if (is_outdone(view, job))
            continue;
        failed += !!failure_of(job);
        running += job->state < JOB_TIMED_OUT;
        ended += job->state >= JOB_TIMED_OUT;
    }
    if (view->n_oncalls == 0 || ended == 0 || (failed == 0 && running > 0))
        return ONCALL_NOTHING;
    oncall_marker(view->repo, to);
    if (failed > 0)
        put_failing(to, view, failed);
    else
        put_resolved(to, view);
    return failed > 0 ? ONCALL_FAILING : ONCALL_RESOLVED;
}

void oncall_digest(struct str text, char ret[17])
{
    snprintf(ret, 17, "%016" PRIx64, digest_add_text(DIGEST_START, text));
}

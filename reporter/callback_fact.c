#include "callback_fact.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/model/callback.h"
#include "../common/model/ids.h"

static enum err identity_check(const struct headers *h, struct why *why)
{
    struct str head_sha = headers_get(h, "head_sha");
    if (!repo_valid(headers_get(h, "repo")))
        return why_set(why, ERR_REFUSE, "header repo is missing or not owner/name");
    if (!delivery_valid(headers_get(h, "delivery")))
        return why_set(why, ERR_REFUSE, "header delivery is missing or malformed");
    if (level_parse(headers_get(h, "level")) == 0)
        return why_set(why, ERR_REFUSE, "header level must be L1 to L4");
    if (headers_get_i64(h, "received_ms", 0) <= 0)
        return why_set(why, ERR_REFUSE, "header received_ms is missing");
    if (head_sha.len > 0 && !sha_valid(head_sha))
        return why_set(why, ERR_REFUSE, "header head_sha is not a commit");
    return OK;
}

static char *text_of_header(const struct headers *h, const char *name)
{
    struct str value = headers_get(h, name);
    return value.len > 0 ? str_dup(value) : NULL;
}

static char *text_or_null(const char *text)
{
    return *text ? mem_dup(text) : NULL;
}

/* The first rows of the array; the others are counted. */
static void failed_tests_fill(struct result_record *job, const struct callback *c)
{
    if (!c->failed_tests)
        return;
    int64_t cut = c->failed_tests_cut;
    json_t *rows = json_loads(c->failed_tests, 0, NULL);
    size_t n = json_array_size(rows);
    for (size_t left = n; left > FAILED_TESTS_KEPT; left--, cut++)
        json_array_remove(rows, left - 1);
    if (n > 0)
        job->failed_tests = json_dumps(rows, JSON_COMPACT);
    if (cut > 0)
        job->failed_tests_cut = cut;
    json_decref(rows);
}

/* The page of a run is on its CI's own host, where that is known: anywhere else it would be a link
 * of the reporter's choice under the name of that CI. */
static bool is_page_of(struct str issuer, const char *url)
{
    static const char *const pages[][2] = {
        { CALLBACK_ISSUER_ACTIONS, "https://github.com/" },
        { CALLBACK_ISSUER_BUILDKITE, "https://buildkite.com/" },
    };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (str_is(issuer, pages[i][0]))
            return str_starts(str_of(url), pages[i][1]);
    return true;
}

static void job_fill(struct result_record *job, const struct headers *h, const struct callback *c,
                     const char *upstream_repo)
{
    struct str issuer = headers_get(h, "issuer");
    int64_t pr = headers_get_i64(h, "pr", 0);
    struct buf CLEANUP(buf_clear) key = BUF_INIT(8192);
    job_key(&key, headers_get(h, "repo"), headers_get(h, "delivery"), str_of(c->workflow_name),
            str_of(c->job_name), str_of(c->check_run_id));
    job->key = str_dup(buf_str(&key));
    job->repo = text_of_header(h, "repo");
    job->level = level_parse(headers_get(h, "level"));
    job->upstream_repo = mem_dup(upstream_repo);
    job->event_type = text_or_null(c->event_type);
    job->pr_number = pr > 0 ? pr : 0;
    job->head_sha = text_of_header(h, "head_sha");
    job->delivery_id = text_of_header(h, "delivery");
    job->workflow_name = mem_dup(c->workflow_name);
    job->job_name = mem_dup(c->job_name);
    job->check_run_id = mem_dup(c->check_run_id);
    job->run_id = mem_dup(c->run_id);
    job->run_attempt = mem_dup(c->run_attempt);
    job->run_url = is_page_of(issuer, c->url) ? text_or_null(c->url) : NULL;
    job->artifact_url = text_or_null(c->artifact_url);
    job->started_at = text_or_null(c->started_at);
    job->completed_at = text_or_null(c->completed_at);
    job->environment = text_or_null(c->environment);
    job->dispatched_ms = headers_get_i64(h, "dispatched_ms", -1);
    job->run_complete = c->run_complete ? 1 : -1;
    if (c->triage_verdict)
        job->triage_verdict = mem_dup(c->triage_verdict);
    if (str_is(headers_get(h, "provenance"),
               "sweeper")) { /* the sweeper speaks for a job that fell silent; it does not know on
                                which CI */
        job->state = JOB_TIMED_OUT;
        job->conclusion = text_or_null(c->no_conclusion ? "timed_out" : c->conclusion);
    } else {
        job->issuer = text_of_header(h, "issuer");
        job->state = c->status;
        job->conclusion = c->status == JOB_COMPLETED ? text_or_null(c->conclusion) : NULL;
        job->no_conclusion = c->no_conclusion ? 1 : -1;
    }
    failed_tests_fill(job, c);
    if (c->has_tests) {
        job->total = c->total;
        job->passed = c->passed;
        job->failed = c->failed;
        job->skipped = c->skipped;
    }
}

enum err callback_fact_read(const struct headers *headers, struct str body,
                            const char *upstream_repo, struct callback_fact *ret, struct why *why)
{
    enum err err = identity_check(headers, why);
    if (err)
        return err;
    struct callback *c = mem_alloc(1, sizeof(*c));
    err = callback_parse(body, headers_get(headers, "run_attempt"), c, why);
    if (!err) {
        result_record_init(&ret->job);
        job_fill(&ret->job, headers, c, upstream_repo);
        ret->received_ms = headers_get_i64(headers, "received_ms", 0);
        ret->pending = str_is(headers_get(headers, "provenance"), "pending");
        callback_clear(c);
    }
    free(c);
    return err;
}

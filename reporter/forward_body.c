#include "forward_body.h"

#include <inttypes.h>

#include "../common/model/json_scan.h"

static void put_name(struct buf *to, const char *name)
{
    if (to->len > 0 && to->ptr[to->len - 1] != '{')
        buf_putc(to, ',');
    buf_printf(to, "\"%s\":", name);
}

static void put_text(struct buf *to, const char *name, const char *text)
{
    put_name(to, name);
    if (text)
        json_quote(to, str_of(text));
    else
        buf_puts(to, "null");
}

static void put_number(struct buf *to, const char *name, int64_t n)
{
    put_name(to, name);
    if (n >= 0)
        buf_printf(to, "%" PRId64, n);
    else
        buf_puts(to, "null");
}

static void put_seconds(struct buf *to, const char *name, int64_t ms)
{
    put_name(to, name);
    if (ms >= 0)
        buf_printf(to, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    else
        buf_puts(to, "null");
}

/* The value is JSON already: callback_parse checked and cut it. */
static void put_json(struct buf *to, const char *name, const char *json)
{
    if (!json)
        return;
    put_name(to, name);
    buf_puts(to, json);
}

static void put_trusted(struct buf *to, const struct result_record *r)
{
    put_name(to, "trusted");
    buf_puts(to, "{\"ci_metrics\":{");
    put_seconds(to, "queue_time", r->queue_ms);
    put_seconds(to, "execution_time", r->execution_ms);
    buf_putc(to, '}');
    put_text(to, "verified_repo", r->repo);
    put_name(to, "downstream_repo_level");
    if (r->level > 0)
        buf_printf(to, "\"L%" PRId64 "\"", r->level);
    else
        buf_puts(to, "null");
    buf_putc(to, '}');
}

/* What the HUD reads of the webhook that started it all. */
static void put_payload(struct buf *to, const struct result_record *r)
{
    put_name(to, "payload");
    buf_putc(to, '{');
    put_name(to, "repository");
    buf_putc(to, '{');
    put_text(to, "full_name", r->upstream_repo);
    buf_putc(to, '}');
    if (r->pr_number > 0) {
        put_name(to, "pull_request");
        buf_putc(to, '{');
        put_number(to, "number", r->pr_number);
        put_name(to, "head");
        buf_putc(to, '{');
        put_text(to, "sha", r->head_sha);
        buf_puts(to, "}}");
    } else {
        put_text(to, "after", r->head_sha);
    }
    buf_putc(to, '}');
}

static void put_test_results(struct buf *to, const struct result_record *r)
{
    if (r->total < 0 && r->passed < 0 && r->failed < 0 && r->skipped < 0)
        return;
    put_name(to, "test_results");
    buf_putc(to, '{');
    put_number(to, "passed", r->passed);
    put_number(to, "failed", r->failed);
    put_number(to, "skipped", r->skipped);
    put_number(to, "total", r->total);
    buf_putc(to, '}');
}

static void put_workflow(struct buf *to, const struct result_record *r)
{
    /* A time-out is a state of ours; the HUD knows it as a conclusion. */
    bool ended = r->state == JOB_COMPLETED || r->state == JOB_TIMED_OUT;
    put_name(to, "workflow");
    buf_putc(to, '{');
    put_text(to, "schema_version", "1");
    put_text(to, "status", ended ? "completed" : job_state_name(r->state));
    put_text(to, "conclusion", r->conclusion);
    put_text(to, "name", r->workflow_name);
    put_text(to, "url", r->run_url);
    put_text(to, "run_id", r->run_id);
    put_text(to, "run_attempt", r->run_attempt);
    put_text(to, "job_name", r->job_name);
    put_text(to, "check_run_id", r->check_run_id);
    put_text(to, "started_at", r->started_at);
    put_text(to, "completed_at", r->completed_at);
    put_text(to, "artifact_url", r->artifact_url);
    put_text(to, "environment", r->environment);
    put_test_results(to, r);
    put_json(to, "failed_tests_detail", r->failed_tests);
    put_json(to, "triage_verdict", r->triage_verdict);
    buf_putc(to, '}');
}

void forward_body(const struct result_record *record, struct buf *to)
{
    buf_putc(to, '{');
    put_trusted(to, record);
    put_name(to, "untrusted");
    buf_puts(to, "{\"callback_payload\":{");
    put_text(to, "event_type", record->event_type);
    put_text(to, "delivery_id", record->delivery_id);
    put_payload(to, record);
    put_workflow(to, record);
    buf_puts(to, "}}}");
}

enum forward_verdict forward_classify(int status)
{
    if (status >= 200 && status < 300)
        return FORWARD_SENT;
    if (status == 0 || status == 408 || status == 429 || status >= 500)
        return FORWARD_WAIT;
    return FORWARD_REFUSED;
}

#include "forward_body.h"

#include "../common/base/json_put.h"
#include "../common/model/ids.h"

static void column_put(struct buf *to, const char *name, const char *text)
{
    json_put_text(to, name, str_of(text));
}

/* The value is JSON already: callback_parse checked and cut it. */
static void column_put_json(struct buf *to, const char *name, const char *json)
{
    if (!json)
        return;
    json_put_name(to, name);
    buf_puts(to, json);
}

static void put_workflow(struct buf *to, const struct result_record *r)
{
    /* A time-out is a state of ours; the HUD knows it as a conclusion. */
    bool ended = r->state == JOB_COMPLETED || r->state == JOB_TIMED_OUT;
    json_put_begin(to, "workflow", '{');
    column_put(to, "schema_version", "1");
    column_put(to, "status", ended ? "completed" : job_state_name(r->state));
    column_put(to, "conclusion", r->conclusion);
    column_put(to, "name", r->workflow_name);
    column_put(to, "url", r->run_url);
    column_put(to, "run_id", r->run_id);
    column_put(to, "run_attempt", r->run_attempt);
    column_put(to, "job_name", r->job_name);
    column_put(to, "check_run_id", r->check_run_id);
    column_put(to, "started_at", r->started_at);
    column_put(to, "completed_at", r->completed_at);
    column_put(to, "artifact_url", r->artifact_url);
    column_put(to, "environment", r->environment);
    if (r->total >= 0 || r->passed >= 0 || r->failed >= 0 || r->skipped >= 0) {
        json_put_begin(to, "test_results", '{');
        json_put_number(to, "passed", r->passed);
        json_put_number(to, "failed", r->failed);
        json_put_number(to, "skipped", r->skipped);
        json_put_number(to, "total", r->total);
        buf_putc(to, '}');
    }
    column_put_json(to, "failed_tests_detail", r->failed_tests);
    column_put_json(to, "triage_verdict", r->triage_verdict);
    buf_putc(to, '}');
}

void forward_body(const struct result_record *r, struct buf *to)
{
    buf_puts(to, "{\"trusted\":{\"ci_metrics\":{");
    json_put_seconds(to, "queue_time", r->queue_ms);
    json_put_seconds(to, "execution_time", r->execution_ms);
    buf_putc(to, '}');
    column_put(to, "verified_repo", r->repo);
    column_put(to, "downstream_repo_level", r->level > 0 ? level_name((int)r->level) : NULL);
    buf_puts(to, "},\"untrusted\":{\"callback_payload\":{");
    column_put(to, "event_type", r->event_type);
    column_put(to, "delivery_id", r->delivery_id);
    /* What the HUD reads of the webhook that started it all. */
    buf_puts(to, ",\"payload\":{\"repository\":{");
    column_put(to, "full_name", r->upstream_repo);
    buf_putc(to, '}');
    if (r->pr_number > 0) {
        buf_puts(to, ",\"pull_request\":{");
        json_put_number(to, "number", r->pr_number);
        buf_puts(to, ",\"head\":{");
        column_put(to, "sha", r->head_sha);
        buf_puts(to, "}}");
    } else {
        if (result_record_is_self(r)) /* as it reports it */
            column_put(to, "head_sha", r->head_sha);
        column_put(to, "after", r->head_sha);
    }
    buf_putc(to, '}');
    put_workflow(to, r);
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

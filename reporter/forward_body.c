#include "forward_body.h"

#include "../common/base/json_put.h"
#include "../common/model/ids.h"

static void put(struct buf *to, const char *name, const char *text)
{
    json_put_text(to, name, str_of(text));
}

/* The value is JSON already: callback_parse checked and cut it. */
static void put_json(struct buf *to, const char *name, const char *json)
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
    put(to, "schema_version", "1");
    put(to, "status", ended ? "completed" : job_state_name(r->state));
    put(to, "conclusion", r->conclusion);
    put(to, "name", r->workflow_name);
    put(to, "url", r->run_url);
    put(to, "run_id", r->run_id);
    put(to, "run_attempt", r->run_attempt);
    put(to, "job_name", r->job_name);
    put(to, "check_run_id", r->check_run_id);
    put(to, "started_at", r->started_at);
    put(to, "completed_at", r->completed_at);
    put(to, "artifact_url", r->artifact_url);
    put(to, "environment", r->environment);
    if (r->total >= 0 || r->passed >= 0 || r->failed >= 0 || r->skipped >= 0) {
        json_put_begin(to, "test_results", '{');
        json_put_number(to, "passed", r->passed);
        json_put_number(to, "failed", r->failed);
        json_put_number(to, "skipped", r->skipped);
        json_put_number(to, "total", r->total);
        buf_putc(to, '}');
    }
    put_json(to, "failed_tests_detail", r->failed_tests);
    put_json(to, "triage_verdict", r->triage_verdict);
    buf_putc(to, '}');
}

void forward_body(const struct result_record *r, struct buf *to)
{
    buf_puts(to, "{\"trusted\":{\"ci_metrics\":{");
    json_put_seconds(to, "queue_time", r->queue_ms);
    json_put_seconds(to, "execution_time", r->execution_ms);
    buf_putc(to, '}');
    put(to, "verified_repo", r->repo);
    put(to, "downstream_repo_level", r->level > 0 ? level_name((int)r->level) : NULL);
    buf_puts(to, "},\"untrusted\":{\"callback_payload\":{");
    put(to, "event_type", r->event_type);
    put(to, "delivery_id", r->delivery_id);
    /* What the HUD reads of the webhook that started it all. */
    buf_puts(to, ",\"payload\":{\"repository\":{");
    put(to, "full_name", r->upstream_repo);
    buf_putc(to, '}');
    if (r->pr_number > 0) {
        buf_puts(to, ",\"pull_request\":{");
        json_put_number(to, "number", r->pr_number);
        buf_puts(to, ",\"head\":{");
        put(to, "sha", r->head_sha);
        buf_puts(to, "}}");
    } else {
        if (result_record_is_self(r)) /* as it reports it */
            put(to, "head_sha", r->head_sha);
        put(to, "after", r->head_sha);
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

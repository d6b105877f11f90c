#include "sweep_callback.h"

#include "../common/base/json_put.h"
#include "../common/model/ids.h"

bool sweep_callback_possible(const struct result_record *job)
{
    return job->key && job->repo && job->delivery_id && job->workflow_name && job->job_name &&
           job->check_run_id && job->run_id && job->run_attempt && *level_name((int)job->level);
}

void sweep_callback_key(const struct result_record *job, struct buf *to)
{
    buf_puts(to, job->delivery_id);
    buf_putc(to, '/');
    buf_puts(to, job->repo);
}

void sweep_callback_headers(const struct result_record *job, int64_t ended_ms, struct headers *to)
{
    headers_init(to);
    headers_put(to, "repo", str_of(job->repo));
    headers_put(to, "level", str_of(level_name((int)job->level)));
    headers_put(to, "issuer", STR_LIT("crcr-reporter"));
    headers_put(to, "provenance", STR_LIT("sweeper"));
    headers_put(to, "delivery", str_of(job->delivery_id));
    if (job->pr_number > 0)
        headers_put_i64(to, "pr", job->pr_number);
    headers_put(to, "head_sha", str_of(job->head_sha));
    if (job->dispatched_ms > 0)
        headers_put_i64(to, "dispatched_ms", job->dispatched_ms);
    headers_put_i64(to, "received_ms", ended_ms);
}

static void member_put(struct buf *to, const char *name, const char *value)
{
    if (value)
        json_put_text(to, name, str_of(value));
}

void sweep_callback_body(const struct result_record *job, const char *conclusion, struct buf *to)
{
    const struct {
        const char *name, *value;
    } workflow[] = {
        { "schema_version", "1" },     { "status", "completed" },
        { "conclusion", conclusion },  { "name", job->workflow_name },
        { "job_name", job->job_name }, { "check_run_id", job->check_run_id },
        { "run_id", job->run_id },     { "run_attempt", job->run_attempt },
        { "url", job->run_url },
    };
    buf_putc(to, '{');
    member_put(to, "event_type", job->event_type);
    member_put(to, "delivery_id", job->delivery_id);
    buf_puts(to, ",\"workflow\":{");
    for (size_t i = 0; i < sizeof(workflow) / sizeof(workflow[0]); i++)
        member_put(to, workflow[i].name, workflow[i].value);
    buf_puts(to, "}}");
}

#include "canary.h"

#include <string.h>

#include "../../common/base/json_put.h"
#include "../../common/model/canary.h"
#include "../aggregate.h"

void canary_from_jobs(struct canary *ret, const struct result_record *jobs, size_t n, bool listed)
{
    const struct result_record *newest = NULL;
    *ret = (struct canary){ .known = listed || n > 0 };
    for (size_t i = 0; i < n; i++) {
        const struct result_record *job = &jobs[i];
        bool ended = job->state >= JOB_TIMED_OUT;
        if (ended && job_last_ms(job) > ret->result_ms)
            ret->result_ms = job_last_ms(job);
        if (job->replaced || !job->run_id)
            continue;
        newest = newest ? newest : job;
        if (strcmp(job->run_id, newest->run_id) != 0)
            continue;
        int64_t first_ms = job_first_ms(job);
        ret->jobs++;
        ret->running += !ended;
        ret->unexpected += ended && !result_record_is_successful(job);
        if (!ret->began_ms || (first_ms > 0 && first_ms < ret->began_ms))
            ret->began_ms = first_ms;
    }
    str_copy(ret->delivery, sizeof(ret->delivery), str_of(newest ? newest->delivery_id : ""));
}

void canary_put(struct buf *to, const struct canary *canary)
{
    json_put_name(to, "canary");
    buf_puts(to, canary->known ? "{" : "null");
    if (!canary->known)
        return;
    json_put_string(to, "repo", CANARY_REPO);
    json_put_time(to, "result_at", canary->result_ms);
    json_put_time(to, "began_at", canary->began_ms);
    json_put_string(to, "delivery_id", canary->delivery);
    json_put_number(to, "jobs", canary->jobs);
    json_put_number(to, "running", canary->running);
    json_put_number(to, "unexpected", canary->unexpected);
    buf_putc(to, '}');
}

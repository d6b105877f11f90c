#include "ended_runs.h"

#include <string.h>

#include "../common/model/attempt.h"
#include "aggregate.h"

bool job_is_open(const struct result_record *job)
{
    return job->state == JOB_IN_PROGRESS && job->level >= 2 && job->head_sha && job->run_id &&
           result_record_is_of_actions(job) && !result_record_is_self(job);
}

static size_t run_index(const struct open_runs *runs, const char *run_id)
{
    size_t i = 0;
    while (i < runs->n && strcmp(runs->at[i].run_id, run_id) != 0)
        i++;
    return i;
}

void ended_runs_find(const struct result_record *jobs, size_t n, struct open_runs *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!job_is_open(&jobs[i]))
            continue;
        size_t at = run_index(ret, jobs[i].run_id);
        if (at == OPEN_RUNS_MAX)
            continue;
        if (at == ret->n)
            ret->at[ret->n++] = (struct open_run){ .run_id = jobs[i].run_id };
        struct str attempt = str_of(jobs[i].run_attempt);
        if (attempt_compare(attempt, str_of(ret->at[at].attempt)) > 0)
            ret->at[at].attempt = attempt.ptr;
    }
    for (size_t i = 0; i < n && ret->n > 0; i++) {
        size_t at = jobs[i].run_id ? run_index(ret, jobs[i].run_id) : ret->n;
        int64_t last_ms = job_last_ms(&jobs[i]);
        if (at < ret->n && last_ms > ret->at[at].last_ms)
            ret->at[at].last_ms = last_ms;
    }
}

/* GitHub repeats only a run that has ended. How the attempt before ended, it does not say. */
static const char *attempt_end(const struct run_answer *answer, const char *run_attempt)
{
    int64_t attempt = attempt_number(str_of(run_attempt));
    bool said = answer && (answer->said == RUN_SAID_GOING || answer->said == RUN_SAID_COMPLETED);
    if (!said || answer->attempt < attempt)
        return NULL;
    if (answer->attempt > attempt)
        return "cancelled";
    return answer->said == RUN_SAID_COMPLETED ? conclusion_shown(answer->conclusion) : NULL;
}

const char *ended_runs_ask(const struct open_runs *runs, const struct run_answers *answers,
                           int64_t now_ms, int64_t *look_ms)
{
    *look_ms = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct open_run *run = &runs->at[i];
        const struct run_answer *answer = run_answer_find(answers, run->run_id);
        int64_t asked_ms = answer ? answer->asked_ms : 0;
        bool ended = !!attempt_end(answer, run->attempt);
        if (answer && answer->said == RUN_SAID_NO && asked_ms >= run->last_ms)
            continue; /* it would be refused again */
        int64_t next_ms =
            (ended || run->last_ms > asked_ms ? run->last_ms : asked_ms) + OPEN_ASK_MS;
        if (now_ms >= next_ms && !ended)
            return run->run_id;
        if (now_ms < next_ms && (*look_ms == 0 || next_ms < *look_ms))
            *look_ms = next_ms;
    }
    return NULL;
}

const char *ended_runs_end(const struct open_runs *runs, const struct run_answers *answers,
                           const struct result_record *job, int64_t now_ms)
{
    size_t at = job_is_open(job) ? run_index(runs, job->run_id) : runs->n;
    if (at == runs->n || now_ms < runs->at[at].last_ms + OPEN_ASK_MS)
        return NULL;
    return attempt_end(run_answer_find(answers, job->run_id), job->run_attempt);
}

#include "counted_runs.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "attempt.h"

#define RUN_MAX_BYTES 16384

static int64_t time_ms(const char *text)
{
    int64_t ms;
    struct why why;
    return text && !clock_parse(str_of(text), &ms, &why) ? ms : -1;
}

void run_job_init(struct run_job *ret, const struct result_record *row, int64_t ended_ms)
{
    const char *conclusion = result_record_conclusion(row);
    bool self = result_record_is_self(row);
    char repo[REPO_MAX + 1];
    struct buf run;
    *ret = (struct run_job){
        .key = row->key,
        .kind = self                 ? RUN_SELF
                : row->pr_number > 0 ? RUN_PULL
                                     : RUN_PUSH,
        .ended = row->state == JOB_COMPLETED || row->state == JOB_TIMED_OUT,
        .successful = result_record_is_successful(row),
        .queue_ms = row->queue_ms,
        .execution_ms = row->execution_ms,
        .started_ms = time_ms(row->started_at),
        .ended_ms = ended_ms,
        .completed_ms = time_ms(row->completed_at),
    };
    bool failed = ret->ended && !ret->successful && conclusion;
    ret->cancelled = failed && strcmp(conclusion, "cancelled") == 0;
    ret->timed_out = failed && strcmp(conclusion, "timed_out") == 0;
    if (ret->completed_ms < 0 || ret->completed_ms > ended_ms)
        ret->completed_ms = ended_ms;
    (void)str_copy(ret->attempt, sizeof(ret->attempt), str_of(row->run_attempt));
    (void)str_lower(repo, sizeof(repo), str_of(row->repo));
    struct str workflow = str_of(row->workflow_name), job = str_of(row->job_name);
    const struct str parts[] = { str_of(repo), self ? STR_LIT("self") : STR_LIT("dispatched"),
                                 self ? STR_NONE : str_of(row->delivery_id),
                                 self ? STR_NONE : workflow, str_of(row->run_id) };
    buf_init(&run, RUN_MAX_BYTES);
    buf_printf(&run, "%.*s\n%.*s", STR_ARG(workflow), STR_ARG(job));
    ret->job = buf_take(&run, NULL);
    buf_init(&run, RUN_MAX_BYTES);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        buf_put(&run, parts[i]);
        buf_putc(&run, '\n');
    }
    ret->run = buf_take(&run, NULL);
}

void run_job_clear(struct run_job *job)
{
    free(job->run);
    free(job->job);
    *job = (struct run_job){ .run = NULL };
}

/* Runs, in each the jobs by name, of each the newest attempt first. */
static int job_compare(const void *left, const void *right)
{
    const struct run_job *a = *(const struct run_job *const *)left;
    const struct run_job *b = *(const struct run_job *const *)right;
    int order = strcmp(a->run, b->run);
    if (order == 0)
        order = strcmp(a->job, b->job);
    if (order == 0)
        order = attempt_compare(str_of(b->attempt), str_of(a->attempt));
    return order != 0 ? order : strcmp(a->key, b->key);
}

static void latest(int64_t *to, int64_t ms)
{
    if (ms > *to)
        *to = ms;
}

/* What is known so far of a run. */
struct sums {
    bool going; /* a job has not ended */
    int64_t queue_ms, started_ms, completed_ms, ended_ms;
};

static void earliest(int64_t *to, int64_t ms)
{
    if (ms >= 0 && (*to < 0 || ms < *to))
        *to = ms;
}

/* The jobs of one name. Of the newest attempt all count: legs of a matrix may share a name. */
static void name_add(struct sums *run, struct run_job **jobs, size_t n)
{
    int64_t first_queue_ms = -1;
    for (size_t i = 0; i < n; i++)
        if (jobs[i]->queue_ms >= 0)
            first_queue_ms = jobs[i]->queue_ms;
    for (size_t i = 0; i < n && strcmp(jobs[i]->attempt, jobs[0]->attempt) == 0; i++) {
        struct run_job *job = jobs[i];
        run->going |= !job->ended;
        job->counts = job->ended && job->ended_ms >= 0;
        if (!job->counts)
            continue;
        job->waited_ms = job->queue_ms >= 0 ? job->queue_ms : first_queue_ms;
        earliest(&run->queue_ms, job->waited_ms);
        earliest(&run->started_ms, job->started_ms);
        latest(&run->completed_ms, job->completed_ms);
        latest(&run->ended_ms, job->ended_ms);
    }
}

size_t counted_runs_find(struct run_job **jobs, size_t n, struct run_end *ret)
{
    size_t n_runs = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        jobs[i]->counts = false;
    qsort(jobs, n, sizeof(struct run_job *), job_compare);
    while (at < n) {
        struct sums run = { false, -1, -1, -1, -1 };
        size_t first = at;
        while (at < n && strcmp(jobs[at]->run, jobs[first]->run) == 0) {
            size_t name = at;
            while (at < n && strcmp(jobs[at]->run, jobs[name]->run) == 0 &&
                   strcmp(jobs[at]->job, jobs[name]->job) == 0)
                at++;
            name_add(&run, jobs + name, at - name);
        }
        if (run.going || run.ended_ms < 0)
            continue;
        int64_t took_ms = run.completed_ms > run.started_ms ? run.completed_ms - run.started_ms : 0;
        int64_t queue_ms = run.queue_ms > 0 ? run.queue_ms : 0;
        ret[n_runs++] = (struct run_end){ .job = jobs[first],
                                          .ended_ms = run.ended_ms,
                                          .completed_ms = run.completed_ms,
                                          .queue_ms = run.queue_ms,
                                          .e2e_ms = run.started_ms < 0 ? -1 : queue_ms + took_ms };
    }
    return n_runs;
}

#include "tally.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/view/hours.h"

/* What one hour and kind gets. */
struct part {
    int64_t hour;
    enum hours_kind kind;
    struct figures figures;
};

struct parts {
    struct part *at;
    size_t n;
};

static struct figures *part_of(struct parts *parts, int64_t at_ms, enum hours_kind kind)
{
    int64_t hour = at_ms / HOUR_MS;
    for (size_t i = 0; i < parts->n; i++)
        if (parts->at[i].hour == hour && parts->at[i].kind == kind)
            return &parts->at[i].figures;
    parts->at = mem_resize(parts->at, parts->n + 1, sizeof(*parts->at));
    struct part *part = &parts->at[parts->n++];
    memset(part, 0, sizeof(*part));
    part->hour = hour;
    part->kind = kind;
    return &part->figures;
}

static int part_compare(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    int order = (a->hour > b->hour) - (a->hour < b->hour);
    return order != 0 ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

/* ---- the jobs in order ----------------------------------------------------------------------- */

static int text_compare(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* 0 when it is no number: such attempts replace nothing. */
static uint64_t attempt_of(const struct result_record *job)
{
    uint64_t n;
    return str_to_u64(str_of(job->run_attempt), &n) ? n : 0;
}

static enum hours_kind kind_of(const struct result_record *job)
{
    return result_record_is_self(job) ? HOURS_SELF : HOURS_DISPATCHED;
}

static int run_compare(const struct result_record *a, const struct result_record *b)
{
    int order = (int)kind_of(a) - (int)kind_of(b);
    if (order == 0)
        order = text_compare(a->workflow_name, b->workflow_name);
    return order != 0 ? order : text_compare(a->run_id, b->run_id);
}

/* Runs, in each the jobs by name, of each the newest attempt first. */
static int job_compare(const void *left, const void *right)
{
    const struct result_record *a = *(const struct result_record *const *)left;
    const struct result_record *b = *(const struct result_record *const *)right;
    uint64_t one = attempt_of(a), other = attempt_of(b);
    int order = run_compare(a, b);
    if (order == 0)
        order = text_compare(a->job_name, b->job_name);
    if (order == 0)
        order = (one < other) - (one > other);
    return order != 0 ? order : text_compare(a->key, b->key);
}

/* ---- figures --------------------------------------------------------------------------------- */

static int64_t time_ms(const char *text)
{
    int64_t ms;
    struct why why;
    return text && !clock_parse(str_of(text), &ms, &why) ? ms : -1;
}

static bool has_ended(const struct result_record *job)
{
    return job->state == JOB_COMPLETED || job->state == JOB_TIMED_OUT;
}

/* By the relay's clock; rows from before it was kept have what the CI said. -1: unknown. */
static int64_t ended_ms(const struct result_record *job)
{
    int64_t ms = job->state == JOB_TIMED_OUT ? job->timed_out_ms : job->completed_ms;
    return ms >= 0 ? ms : time_ms(job->completed_at);
}

static void job_add(struct figures *to, const struct result_record *job, int64_t queue_ms)
{
    const char *conclusion = job->state == JOB_TIMED_OUT ? "timed_out" : job->conclusion;
    bool successful = result_record_is_successful(job);
    to->count[FIGURE_COMPLETED]++;
    to->count[FIGURE_SUCCESSFUL] += successful;
    to->count[FIGURE_CANCELLED] += !successful && text_compare(conclusion, "cancelled") == 0;
    to->count[FIGURE_TIMED_OUT] += !successful && text_compare(conclusion, "timed_out") == 0;
    figures_add_time(to, FIGURE_QUEUE, queue_ms);
    figures_add_time(to, FIGURE_EXECUTION, job->execution_ms);
}

/* What is known of a run; -1: nothing. */
struct run {
    bool going; /* a job has not ended */
    int64_t queue_ms, started_ms, completed_ms, ended_ms;
};

/* What a CI says of an end that is later than our hearing of it is not believed. */
static void run_take(struct run *run, const struct result_record *job, int64_t queue_ms)
{
    int64_t ended = ended_ms(job), started = time_ms(job->started_at);
    int64_t completed = time_ms(job->completed_at);
    if (completed < 0 || completed > ended)
        completed = ended;
    if (queue_ms > run->queue_ms)
        run->queue_ms = queue_ms;
    if (started >= 0 && (run->started_ms < 0 || started < run->started_ms))
        run->started_ms = started;
    if (completed > run->completed_ms)
        run->completed_ms = completed;
    if (ended > run->ended_ms)
        run->ended_ms = ended;
}

/* One run: its jobs are sorted as above. Of the newest attempt of a name all count: legs of a
 * matrix may share it. */
static void run_add(struct parts *parts, const struct result_record *const *jobs, size_t n)
{
    enum hours_kind kind = kind_of(jobs[0]);
    struct run run = { false, -1, -1, -1, -1 };
    for (size_t first = 0, end; first < n; first = end) {
        int64_t first_queue_ms = -1;
        for (end = first; end < n && text_compare(jobs[end]->job_name, jobs[first]->job_name) == 0;
             end++)
            if (jobs[end]->queue_ms >= 0)
                first_queue_ms = jobs[end]->queue_ms;
        uint64_t newest = attempt_of(jobs[first]);
        for (size_t i = first; i < end && attempt_of(jobs[i]) == newest; i++) {
            const struct result_record *job = jobs[i];
            int64_t queue_ms = job->queue_ms >= 0 ? job->queue_ms : first_queue_ms;
            if (!has_ended(job)) {
                run.going = true;
                continue;
            }
            if (ended_ms(job) < 0)
                continue;
            job_add(part_of(parts, ended_ms(job), kind), job, queue_ms);
            run_take(&run, job, queue_ms);
        }
    }
    if (run.going || run.ended_ms < 0)
        return;
    struct figures *to = part_of(parts, run.ended_ms, kind);
    to->count[FIGURE_RUNS]++;
    if (run.started_ms < 0)
        return;
    int64_t took_ms = run.completed_ms > run.started_ms ? run.completed_ms - run.started_ms : 0;
    figures_add_time(to, FIGURE_E2E, took_ms + (run.queue_ms > 0 ? run.queue_ms : 0));
}

void tally(const struct result_record *jobs, size_t n, struct buf *to)
{
    struct parts parts = { NULL, 0 };
    const struct result_record **sorted = mem_alloc(n + 1, sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &jobs[i];
    qsort(sorted, n, sizeof(*sorted), job_compare);
    for (size_t at = 0, next; at < n; at = next) {
        for (next = at + 1; next < n && run_compare(sorted[next], sorted[at]) == 0;)
            next++;
        run_add(&parts, sorted + at, next - at);
    }
    if (parts.n > 0)
        qsort(parts.at, parts.n, sizeof(*parts.at), part_compare);
    for (size_t i = 0; i < parts.n; i++)
        hours_put(to, parts.at[i].hour, parts.at[i].kind, &parts.at[i].figures);
    free(parts.at);
    free(sorted);
}

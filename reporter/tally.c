#include "tally.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/model/counted_runs.h"
#include "../common/view/hours.h"

/* What one hour and kind gets. */
struct part {
    int64_t hour;
    enum run_kind kind;
    struct figures figures;
};

struct parts {
    struct part *at;
    size_t n;
};

static struct figures *part_of(struct parts *parts, int64_t at_ms, enum run_kind kind)
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

/* ---- figures --------------------------------------------------------------------------------- */

/* By the relay's clock; rows from before it was kept have what the CI said. -1: unknown. */
static int64_t ended_ms(const struct result_record *job)
{
    int64_t ms = job->state == JOB_TIMED_OUT ? job->timed_out_ms : job->completed_ms;
    if (ms < 0 && (!job->completed_at || clock_parse(str_of(job->completed_at), &ms, NULL)))
        return -1;
    return ms;
}

static void job_add(struct parts *parts, const struct run_job *job)
{
    struct figures *to = part_of(parts, job->ended_ms, job->kind);
    to->count[FIGURE_COMPLETED]++;
    to->count[FIGURE_SUCCESSFUL] += job->successful;
    to->count[FIGURE_CANCELLED] += job->cancelled;
    to->count[FIGURE_TIMED_OUT] += job->timed_out;
    figures_add_time(to, FIGURE_QUEUE, job->waited_ms);
    figures_add_time(to, FIGURE_EXECUTION, job->execution_ms);
}

static void run_add(struct parts *parts, const struct run_end *run)
{
    struct figures *to = part_of(parts, run->ended_ms, run->job->kind);
    to->count[FIGURE_RUNS]++;
    figures_add_time(to, FIGURE_E2E, run->e2e_ms);
}

void tally(const struct result_record *rows, size_t n, struct buf *to)
{
    struct parts parts = { NULL, 0 };
    struct run_job *jobs = mem_alloc(n + 1, sizeof(*jobs));
    struct run_job **sorted = mem_alloc(n + 1, sizeof(*sorted));
    struct run_end *runs = mem_alloc(n + 1, sizeof(*runs));
    for (size_t i = 0; i < n; i++) {
        run_job_init(&jobs[i], &rows[i], ended_ms(&rows[i]));
        sorted[i] = &jobs[i];
    }
    size_t n_runs = counted_runs_find(sorted, n, runs);
    for (size_t i = 0; i < n; i++)
        if (jobs[i].counts)
            job_add(&parts, &jobs[i]);
    for (size_t i = 0; i < n_runs; i++)
        run_add(&parts, &runs[i]);
    if (parts.n > 0)
        qsort(parts.at, parts.n, sizeof(*parts.at), part_compare);
    for (size_t i = 0; i < parts.n; i++)
        hours_put(to, parts.at[i].hour, parts.at[i].kind, &parts.at[i].figures);
    for (size_t i = 0; i < n; i++)
        run_job_clear(&jobs[i]);
    free(parts.at);
    free(runs);
    free(sorted);
    free(jobs);
}

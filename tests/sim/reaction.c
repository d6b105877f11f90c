#include "reaction.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "callbacks.h"
#include "sim.h"
#include "timers.h"

/* A moment in the life of one job. The run is looked up when the moment comes: a reset or a newer
 * attempt may have overtaken it. */
struct moment {
    struct sim *sim;
    int64_t run_id;
    int64_t attempt;
    size_t job;
};

static void moment_drop(void *opaque)
{
    free(opaque);
}

static void moment_plan(struct sim *sim, const struct run *run, size_t job, int64_t in_ms,
                        timer_fn *fire)
{
    struct moment *m = mem_alloc(1, sizeof(*m));

    *m = (struct moment){ sim, run->id, run->attempt, job };
    timers_add(sim->timers, in_ms, fire, moment_drop, m);
}

static struct run *moment_run(const struct moment *m)
{
    struct run *run = runs_find(m->sim->runs, m->run_id);

    return run && run->attempt == m->attempt ? run : NULL;
}

/* Which statuses a job tells when it starts and when it ends, and how often each. */
static const struct telling {
    const char *start, *end;
    int times;
} tellings[] = {
    [ANSWER_NORMAL] = { "in_progress", "completed", 1 },
    [ANSWER_NEVER] = { NULL, NULL, 0 },
    [ANSWER_START] = { "in_progress", NULL, 1 },
    [ANSWER_END] = { NULL, "completed", 1 },
    [ANSWER_DUPLICATE] = { "in_progress", "completed", 2 },
    [ANSWER_REVERSED] = { "completed", "in_progress", 1 },
};

static void job_tell(struct sim *sim, const struct run *run, size_t job, bool start)
{
    const struct telling *telling = &tellings[run->settings->jobs[job].answer];
    const char *status = start ? telling->start : telling->end;
    bool reports = run_reports(run);

    for (int i = 0; status && reports && i < telling->times; i++)
        callbacks_send(sim, run, job, status);
}

/* Worst first, as GitHub sums up a run. */
static const char *run_conclusion(const struct run *run)
{
    static const char *const worst[] = { "failure", "timed_out", "action_required", "cancelled" };

    for (size_t k = 0; k < sizeof(worst) / sizeof(worst[0]); k++) {
        for (size_t i = 0; i < run->settings->n_jobs; i++) {
            if (run->jobs[i].conclusion && strcmp(run->jobs[i].conclusion, worst[k]) == 0)
                return worst[k];
        }
    }
    return "success";
}

static void run_end(void *opaque)
{
    struct moment *m = opaque;
    struct run *run = moment_run(m);

    if (run) {
        run->status = RUN_COMPLETED;
        run->conclusion = run->cancelled ? "cancelled" : run_conclusion(run);
        run->updated_ms = clock_wall_ms();
    }
    free(m);
}

static bool jobs_ended(const struct run *run)
{
    for (size_t i = 0; i < run->settings->n_jobs; i++) {
        if (run->jobs[i].status != RUN_COMPLETED)
            return false;
    }
    return true;
}

static const char *job_conclusion(const struct run *run, const struct job_setting *setting)
{
    if (run->cancelled)
        return "cancelled";
    return run->attempt > 1 && setting->again ? setting->again : setting->conclusion;
}

static void job_end_now(struct sim *sim, struct run *run, size_t job)
{
    struct run_job *j = &run->jobs[job];

    if (j->status == RUN_COMPLETED)
        return;
    j->status = RUN_COMPLETED;
    j->conclusion = job_conclusion(run, &run->settings->jobs[job]);
    j->ended_ms = clock_wall_ms();
    job_tell(sim, run, job, false);
    if (jobs_ended(run))
        moment_plan(sim, run, 0, run->settings->after_ms, run_end);
}

static void job_end(void *opaque)
{
    struct moment *m = opaque;
    struct run *run = moment_run(m);

    if (run)
        job_end_now(m->sim, run, m->job);
    free(m);
}

/* Jobs that are not queued (cancelled, or not run again) are passed over. */
static void job_start(void *opaque)
{
    struct moment *m = opaque;
    struct run *run = moment_run(m);

    if (run && run->jobs[m->job].status == RUN_QUEUED) {
        struct run_job *job = &run->jobs[m->job];

        run->status = RUN_IN_PROGRESS;
        job->status = RUN_IN_PROGRESS;
        job->started_ms = clock_wall_ms();
        run->updated_ms = job->started_ms;
        job_tell(m->sim, run, m->job, true);
        moment_plan(m->sim, run, m->job, run->settings->jobs[m->job].run_ms, job_end);
    }
    free(m);
}

void reaction_begin(struct sim *sim, struct run *run)
{
    for (size_t i = 0; i < run->settings->n_jobs; i++)
        moment_plan(sim, run, i, run->settings->jobs[i].delay_ms, job_start);
    if (jobs_ended(run)) /* a workflow without jobs */
        moment_plan(sim, run, 0, run->settings->after_ms, run_end);
}

static struct run *run_of(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct run *run = runs_find(sim->runs, call_id(call, 0));

    if (run && str_eq_nocase(str_of(run->repo), call->repo))
        return run;
    reply_error(reply, 404, "Not Found");
    return NULL;
}

static void rerun(struct sim *sim, const struct call *call, bool failed_only, struct reply *reply)
{
    struct run *run = run_of(sim, call, reply);

    if (!run)
        return;
    if (run->status != RUN_COMPLETED) {
        reply_error(reply, 403, "The workflow run is already running");
        return;
    }
    if (failed_only && strcmp(run->conclusion, "success") == 0) {
        reply_error(reply, 403, "This workflow run cannot be retried");
        return;
    }
    run_requeue(sim->runs, run, failed_only, call->now_ms);
    reaction_begin(sim, run);
    reply_json(reply, 201, json_object());
}

void runs_rerun(struct sim *sim, const struct call *call, struct reply *reply)
{
    rerun(sim, call, false, reply);
}

void runs_rerun_failed(struct sim *sim, const struct call *call, struct reply *reply)
{
    rerun(sim, call, true, reply);
}

void runs_cancel(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct run *run = run_of(sim, call, reply);

    if (!run)
        return;
    if (run->status == RUN_COMPLETED) {
        reply_error(reply, 409, "Cannot cancel a workflow run that is completed.");
        return;
    }
    run->cancelled = true;
    for (size_t i = 0; i < run->settings->n_jobs; i++)
        job_end_now(sim, run, i);
    reply_json(reply, 202, json_object());
}

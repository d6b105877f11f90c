/* The aggregate's part of a pass: GitHub is asked about runs where it is time to, and when to look
 * again is noted before the check run is sent, so that a crash leaves a look too many, never one
 * too few. */
#include <stdio.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/github/actions.h"
#include "../common/view/due.h"
#include "reconcile_pass.h"

static struct aggregate_view view_of(const struct pass *p)
{
    const struct reporter *r = p->target->reconcile->reporter;
    const struct job_list *jobs = p->more.at ? &p->more : &p->jobs;
    return (struct aggregate_view){
        .dispatch = &p->dispatch,
        .jobs = jobs->at,
        .n_jobs = jobs->n,
        .more_jobs = p->more.n >= AGGREGATE_JOBS_MAX,
        .answers = &p->answers,
        .now_ms = clock_wall_ms(),
        .silent_ms = r->times.zombie_ms,
        .quiet_ms = r->quiet_ms,
    };
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A limit, or no answer, spends one of the times to ask; the next one comes within a minute. */
static void answer_keep(struct pass *p, enum run_said said, const struct actions_run *run,
                        const char *reason)
{
    struct reconcile *r = p->target->reconcile;
    struct run_answer answer = { .said = said, .asked_ms = clock_wall_ms() };
    struct why why;
    snprintf(answer.run_id, sizeof(answer.run_id), "%s", p->asking);
    if (run) {
        answer.attempt = run->attempt;
        str_copy(answer.conclusion, sizeof(answer.conclusion), run->conclusion);
    }
    if (said == RUN_SAID_NO)
        snprintf(answer.error, sizeof(answer.error), "%s", reason ? reason : "refused");
    run_answers_set(&p->answers, &answer);
    if (run_answer_put(r->redis, str_of(p->target->head_sha), str_of(p->target->repo), &answer,
                       &r->reporter->times, &why) != OK)
        log_warn("run_answer_not_remembered", LOG_STR("error", str_of(why.text)));
}

static void run_told(void *opaque, const struct github_answer *answer,
                     const struct actions_run *run)
{
    struct pass *p = opaque;
    pass_count(p, "ask_run", answer);
    role_progress(p->target->reconcile->role);
    if (target_is_old(p->target)) {
        pass_step(p); /* which ends it: another may have asked later than we did */
        return;
    }
    if (run)
        answer_keep(p, str_is(run->status, "completed") ? RUN_SAID_COMPLETED : RUN_SAID_GOING, run,
                    NULL);
    else
        answer_keep(p, answer->err == ERR_REFUSE ? RUN_SAID_NO : RUN_SAID_NOTHING, NULL,
                    answer->reason);
    log_info("run_asked", LOG_STR("repo", str_of(p->dispatch.repo)),
             LOG_STR("run_id", str_of(p->asking)), LOG_INT("status", answer->status),
             LOG_STR("run", run ? run->status : STR_NONE));
    pass_step(p);
}

/* Starts the question about the next run that is due for one; false: there is none. */
static bool ask_next(struct pass *p, const struct aggregate *a)
{
    struct reconcile *r = p->target->reconcile;
    struct why why;
    for (size_t i = 0; i < a->n_runs; i++) {
        if (!a->runs[i].ask)
            continue;
        snprintf(p->asking, sizeof(p->asking), "%s", a->runs[i].run_id);
        enum err err = actions_run_get(r->github, str_of(p->dispatch.repo), str_of(p->asking),
                                       run_told, p, &why);
        if (err == OK)
            return true;
        answer_keep(p, err == ERR_REFUSE ? RUN_SAID_NO : RUN_SAID_NOTHING, NULL, why.text);
    }
    return false;
}

/* ---- the check ------------------------------------------------------------------------------- */

static enum err due_note(struct pass *p, int64_t at_ms, struct why *why)
{
    return due_set(p->target->reconcile->redis, str_of(p->target->key), at_ms, why);
}

static void due_try(struct pass *p, int64_t at_ms)
{
    struct why why;
    if (due_note(p, at_ms, &why) != OK)
        log_warn("due_not_noted", LOG_STR("error", str_of(why.text)));
}

void pass_forget_due(struct pass *p)
{
    if (target_is_old(p->target)) /* another may have noted a time; one look too many at most */
        return;
    p->target->look_ms = 0;
    due_try(p, 0);
}

void pass_look_again(struct pass *p)
{
    due_try(p, clock_wall_ms());
}

static bool add_check(struct pass *p)
{
    struct aggregate CLEANUP(aggregate_clear) a;
    struct aggregate_view view = view_of(p);
    struct why why;
    aggregate_work_out(&view, &a);
    if (ask_next(p, &a))
        return false;
    aggregate_clear(&a);
    view = view_of(p);
    aggregate_work_out(&view, &a);
    p->target->look_ms = a.look_ms;
    if (due_note(p, a.look_ms, &why) != OK) {
        pass_finish(p, PASS_WAIT, why.text);
        return false;
    }
    desired_aggregate(&a, &view, p->may_start, &p->wanted[p->n++]);
    p->summed_up = true;
    return true;
}

bool pass_sum_up(struct pass *p)
{
    bool wanted = p->has_dispatch && (p->may_start || p->sent[p->n].id);
    if (wanted)
        return add_check(p);
    p->summed_up = true;
    return true;
}

/* One task, from the moment it is read until its outcome is in flight to Kafka. */
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/actions.h"
#include "../common/github/dispatch.h"
#include "metrics.h"
#include "task_record.h"

/* ---- in hand, and no longer ---- */

void tasks_take(struct sender *s, struct work *work)
{
    const struct task_record *r = task_record_take(s, work);
    for (size_t i = 0; r && i < r->n; i++) {
        struct task_in_hand *t = r->tasks[i];
        lanes_put(s->lanes, t->task.repo, t->task.event_key, &t->item);
    }
}

void task_drop(struct task_in_hand *t)
{
    if (t->state != TASK_IN_LANE)
        return;
    lanes_remove(t->s->lanes, &t->item);
    task_record_give_back(t);
}

void task_forget(struct task_in_hand *t)
{
    if (!t)
        return;
    expand_task_free(t->expand);
    task_record_end(t, false);
}

/* ---- decided ---- */

static void log_decided(const struct task_in_hand *t)
{
    static const struct {
        const char *event;
        enum log_level level;
    } kinds[] = {
        [OUTCOME_DISPATCHED] = { "dispatch_sent", LOG_INFO },
        [OUTCOME_UNKNOWN] = { "dispatch_unknown", LOG_WARN },
        [OUTCOME_WAITING] = { "dispatch_waiting", LOG_INFO },
        [OUTCOME_FAILED] = { "dispatch_failed", LOG_WARN },
        [OUTCOME_SUPERSEDED] = { "dispatch_skipped", LOG_INFO },
        [OUTCOME_SKIPPED] = { "dispatch_skipped", LOG_INFO },
        [OUTCOME_DUPLICATE] = { "dispatch_repeated", LOG_INFO },
    };
    const struct outcome *o = &t->outcome;
    log_write(
        kinds[o->outcome].level, kinds[o->outcome].event,
        (const struct log_field[]){
            LOG_STR("delivery", t->task.event.delivery),
            LOG_STR("repo", t->task.repo),
            LOG_STR("tier", t->s->tier),
            LOG_STR("kind", str_of(o->kind)),
            LOG_STR("outcome", str_of(outcome_kind_name(o->outcome))),
            LOG_INT("attempt", o->attempt),
            LOG_INT("status", o->http_status),
            LOG_INT("latency_ms", o->latency_ms),
            LOG_STR("maybe_duplicate",
                    o->maybe_duplicate ? str_of(task_mark_name(o->maybe_duplicate)) : STR_NONE),
            LOG_STR("error", o->error[0] ? str_of(o->error) : STR_NONE),
            { .name = NULL },
        });
}

/* The first reason stays. */
static void mark(struct task_in_hand *t, enum task_mark reason)
{
    if (!t->task.maybe_duplicate)
        t->task.maybe_duplicate = reason;
}

/* Copies into the outcome what the claim stores about the call. */
static void as_called(struct outcome *o, const struct claim_call *call)
{
    if (call->at_ms)
        o->at_ms = call->at_ms;
    if (call->attempt)
        o->attempt = call->attempt;
    o->http_status = call->http_status;
    o->maybe_duplicate = call->maybe_duplicate;
}

/* Machine-readable; only an outcome that waits has one. */
static enum outcome_reason reason_of(const struct dispatch_decision *decision)
{
    if (decision->outcome != OUTCOME_WAITING)
        return REASON_NONE;
    return decision->because == FACT_BREAKER_OPEN ? REASON_BREAKER
           : decision->because == FACT_LIMITED    ? REASON_LIMIT
           : decision->because == FACT_SLOW       ? REASON_SLOW
           : decision->because == FACT_CLAIM_OLD  ? REASON_PAUSED
                                                  : REASON_FAILED;
}

/* Notes what was decided, with its outcome; tasks_finish goes on with it. answer: GitHub's, to a
 * call; else NULL. */
static void decision_set(struct task_in_hand *t, const struct dispatch_decision *decision,
                         const struct github_answer *answer)
{
    struct outcome *o = &t->outcome;
    if (t->state == TASK_CALLING)
        t->s->in_flight--;
    t->state = TASK_DECIDED;
    t->decision = *decision;
    outcome_now(o, &t->task, decision->outcome, decision->reason);
    if (decision->outcome == OUTCOME_DUPLICATE)
        as_called(o, &t->called);
    if (answer)
        o->http_status = answer->status;
    if (answer && answer->sent_ms)
        o->at_ms = t->signed_ms ? t->signed_ms : answer->sent_ms;
    t->decision.reason = NULL;
    o->reason = reason_of(decision);
    if (decision->outcome == OUTCOME_WAITING || decision->outcome == OUTCOME_UNKNOWN)
        o->next_ms = clock_wall_ms() + decision->until_ms - clock_mono_ms();
    log_decided(t);
    mark(t, decision->mark);
    role_progress(t->s->role); /* also after a time-out: GitHub is stalled, not we */
    DL_APPEND(t->s->finishing, t);
}

void task_decided(struct task_in_hand *t, const struct dispatch_decision *decision)
{
    decision_set(t, decision, NULL);
}

double sender_jitter(struct sender *s)
{
    return (double)rand_r(&s->jitter) / RAND_MAX;
}

void task_answered(void *opaque, const struct github_answer *answer)
{
    struct task_in_hand *t = opaque;
    const struct task *task = &t->task;
    struct metrics *m = role_metrics(t->s->role);
    const struct str tier = t->s->tier;
    FAULT_POINT("sender.posted");
    if (answer->sent_ms)
        metrics_observe(m, M_CALL, METRIC_LABELS(tier), (double)answer->micros / 1e6);
    if (answer->sent_ms && task->maybe_duplicate)
        metrics_add(m, M_MAYBE_DUPLICATE,
                    METRIC_LABELS(tier, str_of(task_mark_name(task->maybe_duplicate))), 1);
    /* Webhooks only: the age of a redelivered or replayed event is not our latency. */
    if (!answer->err && str_is(task->event.source, "webhook"))
        metrics_observe(m, M_LATENCY, METRIC_LABELS(tier),
                        (double)(clock_wall_ms() - task->event.received_ms) / 1e3);
    const struct dispatch_decision decision =
        dispatch_decide_answer(answer, task->attempt, clock_mono_ms(), sender_jitter(t->s));
    decision_set(t, &decision, answer);
}

/* ---- calling ---- */

static enum err sign_token(void *opaque, int64_t sent_ms, char **ret, struct why *why)
{
    struct task_in_hand *t = opaque;
    const struct task *task = &t->task;
    struct callback_token token = {
        .pr = task->event.pr,
        .dispatched_ms = sent_ms,
        .issued_s = sent_ms / 1000,
    };
    t->signed_ms = sent_ms;
    if (!str_copy(token.delivery, sizeof(token.delivery), task->event.delivery) ||
        !str_copy(token.repo, sizeof(token.repo), task->repo) ||
        (task->event.head_sha.ptr &&
         !str_copy(token.head_sha, sizeof(token.head_sha), task->event.head_sha)))
        return why_set(why, ERR_REFUSE, "delivery, repo or head_sha is too long");
    return callback_token_sign(t->s->d->callback_keys, &token, ret, why);
}

void task_unreserve(struct task_in_hand *t)
{
    if (t->reserved)
        github_unreserve(t->s->clients.github, t->task.repo);
    t->reserved = false;
}

static void call(struct task_in_hand *t)
{
    struct sender *s = t->s;
    const struct task *task = &t->task;
    const struct dispatch dispatch = {
        .repo = task->repo,
        .event_type = event_kind_name(task->event.kind),
        .delivery = task->event.delivery,
        .payload = t->work->record->value,
        .sign = s->d->callback_keys ? sign_token : NULL,
        .sign_opaque = t,
        .trimmed = task->payload_trimmed,
        .send_by_ms = s->claiming_ms + CLAIM_HALF_MS,
        .inside = true,
        .paid = t->paid,
    };
    struct why why;
    enum err err;
    t->state = TASK_CALLING;
    s->in_flight++;
    if (task->kind == TASK_DISPATCH)
        t->reserved = false; /* it is the call's now */
    else
        task_unreserve(t); /* each of its calls asks the gate */
    if (task->kind == TASK_EXPAND) {
        expand_task_start(t);
        return;
    }
    if (task->kind == TASK_DISPATCH)
        err = dispatch_start(s->clients.github, &dispatch, task_answered, t, &why);
    else
        err = actions_rerun(s->clients.github, task->repo, task->run_id,
                            task->kind == TASK_RERUN_FAILED, s->claiming_ms + CLAIM_HALF_MS,
                            task_answered, t, &why);
    if (!err)
        return;
    const struct github_answer unsent = github_unsent(s->clients.github, err, &why);
    task_answered(t, &unsent);
}

/* ---- before the call ---- */

static void hold(struct task_in_hand *t, int64_t until_ms)
{
    t->state = TASK_IN_LANE;
    lanes_hold(t->s->lanes, &t->item, until_ms);
}

void task_follow(struct task_in_hand *t, const struct dispatch_decision *decision)
{
    if (decision->next == DISPATCH_HOLD) {
        hold(t, decision->until_ms);
    } else if (decision->next == DISPATCH_CALL) {
        mark(t, decision->mark);
        call(t);
    } else {
        decision_set(t, decision, NULL);
    }
}

/* ---- publishing ---- */

static void publish_outcome(struct task_in_hand *t)
{
    struct dispatch_decision *d = &t->decision;
    struct outcome *o = &t->outcome;
    if (d->next == DISPATCH_PARK && !work_can_park(t->work)) {
        d->next = DISPATCH_DEAD;
        d->dlq_class = "refused";
        o->outcome = OUTCOME_FAILED;
        str_copy(o->error, sizeof(o->error), STR_LIT("too large to be put off"));
    }
    if (d->next == DISPATCH_DEAD)
        task_record_dead(t, d->dlq_class);
    post_outcome(t->work, o);
    if (d->next == DISPATCH_WAIT || d->next == DISPATCH_PARK)
        t->task.attempt = d->attempt;
    if (d->next == DISPATCH_WAIT) {
        hold(t, d->until_ms);
        return;
    }
    lanes_end(t->s->lanes, &t->item);
    if (d->next == DISPATCH_PARK) {
        task_record_leave(t, EXIT_PARK);
        return;
    }
    work_done(t->work);
    task_record_end(t, true);
}

/* ---- the ends of claims ---- */

enum claim_end { KEEP, FINISH, RELEASE };

static enum claim_end claim_end_of(const struct task_in_hand *t)
{
    if (!t->owner[0])
        return KEEP;
    /* Release: the call had no effect. A marked task may have been called before: finish. */
    return t->decision.next == DISPATCH_END || t->task.maybe_duplicate ? FINISH : RELEASE;
}

/* Claims end before anything is published: after a crash from here on, the next reader makes no
 * second call (done) or marks it (unknown). Where Redis did not store the end, the fold restores
 * the claim from the outcome. */
void tasks_finish(struct sender *s)
{
    struct task_in_hand *due = s->finishing, *t, *next;
    struct why why = { "" };
    size_t queued = 0;
    enum err queue_err = OK;
    s->finishing = NULL;
    DL_FOREACH(due, t)
    {
        enum claim_end how = claim_end_of(t);
        if (how == KEEP || queue_err)
            continue;
        queue_err = how == FINISH ? claim_finish_queue(s->clients.redis, &t->task, t->owner,
                                                       &t->outcome, &why)
                                  : claim_release_queue(s->clients.redis, &t->task, t->owner, &why);
        queued += !queue_err;
    }
    DL_FOREACH_SAFE(due, t, next)
    {
        enum err err = OK;
        if (claim_end_of(t) != KEEP) {
            err = queued ? claim_end_collect(s->clients.redis, &why) : queue_err;
            queued -= queued > 0;
            FAULT_POINT("sender.claim_done");
        }
        if (err && !s->redis_unavailable)
            log_warn("claim_not_finished", LOG_STR("delivery", t->task.event.delivery),
                     LOG_STR("repo", t->task.repo), LOG_STR("error", str_of(why.text)));
        publish_outcome(t);
    }
    task_records_finish(s);
}

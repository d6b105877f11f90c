/* What follows an answer: the claim, the outcome, and where the task goes next. */
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/model/burial.h"
#include "metrics.h"
#include "sending.h"

static void count(const struct sending *g, size_t family, const char *second)
{
    metrics_add(role_metrics(g->s->role), family, METRIC_LABELS(g->s->tier, str_of(second)), 1);
}

/* ---- the end ---- */

static void stored(void *opaque)
{
    struct sending *g = opaque;
    if (--g->posts == 0 && g->ending)
        DL_APPEND2(g->s->stored, g, turn_prev, turn_next);
}

static void end(struct sending *g)
{
    lanes_end(g->s->lanes, &g->item);
    g->out = false;
    g->ending = true;
}

/* ---- what is stored ---- */

static void post_outcome(struct sending *g)
{
    struct sender *s = g->s;
    g->posts++;
    outbox_tell(s->outbox, s->d->topics.name[TOPIC_DISPATCHES], &g->outcome, stored, g);
    dispatcher_count_outcome(role_metrics(s->role), &g->outcome);
}

static void post_parked(struct sending *g, const char *error)
{
    struct sender *s = g->s;
    const struct retry *retry = &g->retry;
    struct headers headers;
    const char *delay = s->d->topics.name[retry->delay];
    enum topic to = topic_of_tier(s->level);
    int64_t wait_ms = retry->at_ms - clock_mono_ms();
    headers_copy(&headers, &g->record->headers);
    headers_leave_room(&headers, 6);
    headers_set_i64(&headers, "attempt", retry->attempt);
    if (g->task.maybe_duplicate)
        headers_set(&headers, "maybe_duplicate", str_of(task_mark_name(g->task.maybe_duplicate)));
    headers_set(&headers, "to_topic", str_of(s->d->topics.name[to]));
    headers_set_i64(&headers, "not_before_ms", clock_wall_ms() + wait_ms);
    headers_set(&headers, "error", str_of(error));
    struct post post = {
        .topic = delay,
        .place = topic_delay_place(to),
        .key = g->record->key,
        .value = g->record->value,
        .lasting = true,
        .headers = &headers,
    };
    g->posts++;
    outbox_put(s->outbox, &post, stored, g);
    metrics_add(role_metrics(s->role), M_PARKED,
                METRIC_LABELS(str_of(topic_base_name(retry->delay))), 1);
    log_info("parked", LOG_STR("delivery", g->task.event.delivery), LOG_STR("repo", g->task.repo),
             LOG_STR("topic", str_of(delay)), LOG_INT("attempt", retry->attempt),
             LOG_INT("wait_ms", wait_ms));
}

static void post_dead(struct sending *g, const char *error)
{
    if (g->task.maybe_duplicate) /* for whoever replays it */
        headers_set(&g->record->headers, "maybe_duplicate",
                    str_of(task_mark_name(g->task.maybe_duplicate)));
    g->posts++;
    outbox_bury(g->s->outbox, g->s->d->topics.name[TOPIC_DLQ], g->record, g->retry.cls, error,
                stored, g);
    count(g, M_DLQ, g->retry.cls);
}

/* ---- outcomes without a call ---- */

static void outcome_of(struct sending *g, enum outcome_kind kind, const char *error)
{
    int64_t now = clock_wall_ms();
    outcome_init(&g->outcome, &g->task);
    g->outcome.outcome = kind;
    g->outcome.at_ms = now;
    g->outcome.latency_ms = now - g->task.event.received_ms;
    str_copy(g->outcome.error, sizeof(g->outcome.error), str_of(error));
}

void sending_skip(struct sending *g, enum outcome_kind kind, const char *reason)
{
    outcome_of(g, kind, reason);
    post_outcome(g);
    end(g);
    log_info("dispatch_skipped", LOG_STR("delivery", g->task.event.delivery),
             LOG_STR("repo", g->task.repo), LOG_STR("tier", g->s->tier),
             LOG_STR("outcome", str_of(outcome_kind_name(kind))),
             LOG_STR("reason", str_of(reason)));
}

/* The stored outcome says whether it was told already (duplicate) or not (dispatched: whoever made
 * the call ended before it was stored). Either way telling it again is right. */
void sending_repeat(struct sending *g, const struct outcome *outcome)
{
    g->outcome = *outcome;
    g->told = outcome->outcome != OUTCOME_DUPLICATE;
    post_outcome(g);
    end(g);
    log_info("dispatch_repeated", LOG_STR("delivery", g->task.event.delivery),
             LOG_STR("repo", g->task.repo), LOG_STR("tier", g->s->tier));
}

/* ---- GitHub's answer ---- */

static void log_answer(const struct sending *g, const struct retry *retry)
{
    static const struct {
        const char *event;
        enum log_level level;
    } kinds[] = {
        [OUTCOME_DISPATCHED] = { "dispatch_sent", LOG_INFO },
        [OUTCOME_UNKNOWN] = { "dispatch_unknown", LOG_WARN },
        [OUTCOME_WAITING] = { "dispatch_waiting", LOG_INFO },
        [OUTCOME_FAILED] = { "dispatch_failed", LOG_WARN },
        [OUTCOME_SKIPPED] = { "dispatch_skipped", LOG_INFO },
    };
    const struct outcome *o = &g->outcome;
    log_write(
        kinds[retry->outcome].level, kinds[retry->outcome].event,
        (const struct log_field[]){
            LOG_STR("delivery", g->task.event.delivery),
            LOG_STR("repo", g->task.repo),
            LOG_STR("tier", g->s->tier),
            LOG_STR("kind", str_of(o->kind)),
            LOG_INT("attempt", o->attempt),
            LOG_INT("status", o->http_status),
            LOG_INT("latency_ms", o->latency_ms),
            LOG_STR("maybe_duplicate",
                    o->maybe_duplicate ? str_of(task_mark_name(o->maybe_duplicate)) : STR_NONE),
            LOG_STR("error", o->error[0] ? str_of(o->error) : STR_NONE),
            { .name = NULL },
        });
}

static void measure(const struct sending *g, const struct github_answer *answer)
{
    struct metrics *m = role_metrics(g->s->role);
    const struct str *tier = METRIC_LABELS(g->s->tier);
    if (answer->sent_ms)
        metrics_observe(m, M_CALL, tier, (double)answer->micros / 1e6);
    if (answer->sent_ms && g->task.maybe_duplicate)
        count(g, M_MAYBE_DUPLICATE, task_mark_name(g->task.maybe_duplicate));
    /* How long ago a redelivered or replayed event was received says nothing of our speed. */
    if (!answer->err && str_is(g->task.event.source, "webhook"))
        metrics_observe(m, M_LATENCY, tier, (double)g->outcome.latency_ms / 1e3);
}

void sending_unasked(struct sending *g)
{
    if (g->probe)
        breaker_unasked(g->s->breakers, g->task.repo);
    g->probe = false;
}

static void tell_breaker(struct sending *g, const struct github_answer *answer)
{
    struct sender *s = g->s;
    const struct str repo = g->task.repo;
    if (g->task.kind == TASK_EXPAND) /* nothing was asked of the downstream */
        return;
    if (g->lost) /* what else waits for it is another's */
        return;
    if (answer->limited && !answer->sent_ms) /* what got no token spent an attempt: not another */
        sending_unasked(g);
    enum breaker_change change = breaker_answered(s->breakers, repo, answer, clock_mono_ms());
    if (change == BREAKER_SAME)
        return;
    metrics_set(role_metrics(s->role), M_BREAKER_OPEN, METRIC_LABELS(repo),
                change == BREAKER_OPENED);
    if (change == BREAKER_OPENED)
        log_warn("breaker_opened", LOG_STR("repo", repo), LOG_STR("tier", s->tier),
                 LOG_STR("error", str_of(answer->reason)), LOG_INT("probe_ms", BREAKER_PROBE_MS));
    else
        log_info("breaker_closed", LOG_STR("repo", repo), LOG_STR("tier", s->tier),
                 LOG_INT("status", answer->status));
}

/* The next attempt, in hand: the lane waits. */
static void hold(struct sending *g)
{
    g->task.attempt = g->retry.attempt;
    g->out = false;
    lanes_hold(g->s->lanes, &g->item, g->retry.at_ms);
}

/* Decides what follows; the rest waits for sendings_settle. */
static void decide(struct sending *g, const struct github_answer *answer)
{
    struct sender *s = g->s;
    g->retry = retry_decide(answer, g->task.attempt, clock_mono_ms(), sender_jitter(s));
    g->answered = true;
    if (!answer->err && g->nothing[0])
        g->retry.outcome = OUTCOME_SKIPPED;
    outcome_of(g, g->retry.outcome, answer->err ? answer->reason : g->nothing);
    g->outcome.http_status = answer->status;
    if (answer->sent_ms)
        g->outcome.at_ms = g->signed_ms ? g->signed_ms : answer->sent_ms;
    measure(g, answer);
    log_answer(g, &g->retry);
    if (g->retry.maybe_duplicate && !g->task.maybe_duplicate)
        g->task.maybe_duplicate = MARK_ANSWER_UNSEEN;
    role_progress(s->role); /* also a time-out: it is GitHub that does not move, not we */
    DL_APPEND2(s->answered, g, turn_prev, turn_next);
}

void sending_answered(void *opaque, const struct github_answer *answer)
{
    struct sending *g = opaque;
    FAULT_POINT("sender.posted");
    g->calling = false;
    g->s->in_flight--;
    tell_breaker(g, answer);
    decide(g, answer);
}

void sending_postpone(struct sending *g, int64_t until_ms, const char *reason)
{
    const struct github_answer answer = {
        .err = ERR_RETRY,
        .limited = true,
        .wait_until_ms = until_ms,
        .budget_left = -1,
        .reason = reason,
    };
    decide(g, &answer);
}

static bool may_be_put_off(const struct sending *g)
{
    return burial_keeps_whole(g->record->key, g->record->value, &g->record->headers);
}

static void go_on(struct sending *g)
{
    g->answered = false;
    if (g->retry.next == RETRY_PARK && !may_be_put_off(g)) {
        g->retry.next = RETRY_DEAD;
        g->retry.cls = "refused";
        g->outcome.outcome = OUTCOME_FAILED;
    }
    post_outcome(g);
    if (g->retry.next == RETRY_HOLD && !g->lost) {
        hold(g);
        return;
    }
    if (g->retry.next == RETRY_PARK && !g->lost)
        post_parked(g, g->outcome.error);
    if (g->retry.next == RETRY_DEAD && !g->lost)
        post_dead(g, g->outcome.error);
    end(g);
}

/* ---- claims ---- */

typedef enum err queue_fn(struct sending *g, struct why *why);
typedef void collected_fn(struct sending *g, enum err err, const struct why *why);

/* Before anything is stored: what a crash from here on leaves behind is not called a second time
 * (done) or is known to be perhaps the second (unknown). */
static enum err queue_answered(struct sending *g, struct why *why)
{
    struct redis *redis = g->s->redis;
    if (g->retry.next == RETRY_DONE || g->task.maybe_duplicate)
        return claim_finish_queue(redis, &g->task, g->owner, &g->outcome,
                                  sending_can_be_superseded(&g->task), why);
    return claim_release_queue(redis, &g->task, g->owner, why);
}

static void collected_answered(struct sending *g, enum err err, const struct why *why)
{
    FAULT_POINT("sender.claim_done");
    /* Redis did not take it: once more when it is stored, or who reads it next calls again. */
    g->told = g->retry.next == RETRY_DONE && err != ERR_REFUSE;
    if (err && !g->s->redis_unavailable)
        log_warn("claim_not_settled", LOG_STR("delivery", g->task.event.delivery),
                 LOG_STR("repo", g->task.repo), LOG_STR("error", str_of(why->text)));
    go_on(g);
}

/* The claim learns that the outcome has been told, so that a repeat is a plain duplicate. */
static enum err queue_stored(struct sending *g, struct why *why)
{
    g->outcome.outcome = OUTCOME_DUPLICATE;
    return claim_finish_queue(g->s->redis, &g->task, g->owner, &g->outcome,
                              sending_can_be_superseded(&g->task), why);
}

static void finish(struct sending *g)
{
    struct sender *s = g->s;
    DL_DELETE(s->all, g);
    s->n--;
    role_progress(s->role);
    record_done(g->record);
    free(g);
}

static void collected_stored(struct sending *g, enum err err, const struct why *why)
{
    if (err)
        log_debug("claim_not_finished", LOG_STR("delivery", g->task.event.delivery),
                  LOG_STR("repo", g->task.repo), LOG_STR("error", str_of(why->text)));
    finish(g);
}

/* Empties the list: one round trip for all of it. */
static void settle_all(struct sending **list, queue_fn *queue, collected_fn *collected)
{
    struct sending *g, *next, *first_failed = NULL;
    struct why why = { "" };
    enum err err = OK;
    DL_FOREACH2(*list, g, turn_next)
    {
        err = queue(g, &why);
        if (err) {
            first_failed = g;
            break;
        }
    }
    bool queued = true;
    DL_FOREACH_SAFE2(*list, g, next, turn_next)
    {
        queued = queued && g != first_failed;
        enum err ended = queued ? claim_end_collect(g->s->redis, &why) : err;
        DL_DELETE2(*list, g, turn_prev, turn_next);
        collected(g, ended, &why);
    }
}

/* What has no claim to tell need not wait for Redis. */
static void settle_unclaimed(struct sender *s)
{
    struct sending *g, *next;
    DL_FOREACH_SAFE2(s->answered, g, next, turn_next)
    if (!g->owner[0]) {
        DL_DELETE2(s->answered, g, turn_prev, turn_next);
        go_on(g);
    }
    DL_FOREACH_SAFE2(s->stored, g, next, turn_next)
    if (!g->told) {
        DL_DELETE2(s->stored, g, turn_prev, turn_next);
        finish(g);
    }
}

void sendings_settle(struct sender *s)
{
    settle_unclaimed(s);
    settle_all(&s->answered, queue_answered, collected_answered);
    settle_all(&s->stored, queue_stored, collected_stored);
}

bool sendings_unsettled(const struct sender *s)
{
    return s->answered || s->stored;
}

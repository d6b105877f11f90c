/* What follows an answer: the claim, the outcome, and where the task goes next. */
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "metrics.h"
#include "sending.h"

#define OUTCOME_MAX_BYTES 8192

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

static void post_outcome(struct sending *g, const struct outcome *outcome)
{
    struct sender *s = g->s;
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) json;
    struct headers headers;
    buf_init(&key, 512);
    buf_init(&json, OUTCOME_MAX_BYTES);
    buf_printf(&key, "%s/%s", outcome->delivery_id, outcome->repo);
    outcome_to_json(outcome, &json);
    headers_init(&headers);
    headers_put(&headers, "delivery", str_of(outcome->delivery_id));
    headers_put(&headers, "repo", str_of(outcome->repo));
    struct post post = {
        .topic = s->d->topics.name[TOPIC_DISPATCHES],
        .key = buf_str(&key),
        .value = buf_str(&json),
        .headers = &headers,
    };
    g->posts++;
    outbox_put(s->outbox, &post, stored, g);
    count(g, M_OUTCOMES, outcome_kind_name(outcome->outcome));
}

static void post_parked(struct sending *g, const char *error)
{
    struct sender *s = g->s;
    const struct retry *retry = &g->retry;
    struct headers headers;
    const char *delay = s->d->topics.name[retry->delay];
    headers_copy(&headers, &g->record->headers);
    headers_set_i64(&headers, "attempt", retry->attempt);
    if (g->task.maybe_duplicate)
        headers_set(&headers, "maybe_duplicate", STR_LIT("1"));
    headers_set(&headers, "to_topic", str_of(s->d->topics.name[topic_of_tier(s->level)]));
    headers_set_i64(&headers, "not_before_ms", retry->at_ms);
    headers_set(&headers, "error", str_of(error));
    struct post post = {
        .topic = delay,
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
             LOG_INT("wait_ms", retry->at_ms - clock_wall_ms()));
}

static void post_dead(struct sending *g, const char *error)
{
    if (g->task.maybe_duplicate) /* for whoever replays it */
        headers_set(&g->record->headers, "maybe_duplicate", STR_LIT("1"));
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
    post_outcome(g, &g->outcome);
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
    post_outcome(g, &g->outcome);
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
    };
    const struct outcome *o = &g->outcome;
    log_write(kinds[retry->outcome].level, kinds[retry->outcome].event,
              (const struct log_field[]){
                  LOG_STR("delivery", g->task.event.delivery),
                  LOG_STR("repo", g->task.repo),
                  LOG_STR("tier", g->s->tier),
                  LOG_STR("kind", str_of(o->kind)),
                  LOG_INT("attempt", o->attempt),
                  LOG_INT("status", o->http_status),
                  LOG_INT("latency_ms", o->latency_ms),
                  LOG_BOOL("maybe_duplicate", o->maybe_duplicate),
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
        metrics_add(m, M_MAYBE_DUPLICATE, tier, 1);
    if (answer->budget_left >= 0)
        metrics_set(m, M_BUDGET, tier, (double)answer->budget_left);
    if (!answer->err)
        metrics_observe(m, M_LATENCY, tier, (double)g->outcome.latency_ms / 1e3);
}

/* The next attempt, in hand: the lane waits. */
static void hold(struct sending *g)
{
    g->task.attempt = g->retry.attempt;
    g->out = false;
    lanes_hold(g->s->lanes, &g->item, g->retry.at_ms);
}

void sending_answered(void *opaque, const struct github_answer *answer)
{
    struct sending *g = opaque;
    struct sender *s = g->s;
    g->retry = retry_decide(answer, g->task.attempt, clock_wall_ms(), sender_jitter(s));
    g->calling = false;
    g->answered = true;
    s->in_flight--;
    outcome_of(g, g->retry.outcome, answer->err ? answer->reason : "");
    g->outcome.http_status = answer->status;
    if (answer->sent_ms)
        g->outcome.at_ms = g->claimed_ms;
    measure(g, answer);
    log_answer(g, &g->retry);
    g->task.maybe_duplicate |= g->retry.maybe_duplicate;
    role_progress(s->role); /* also a time-out: it is GitHub that does not move, not we */
    DL_APPEND2(s->answered, g, turn_prev, turn_next);
}

static void go_on(struct sending *g)
{
    g->answered = false;
    post_outcome(g, &g->outcome);
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
        return claim_finish_queue(redis, &g->task, g->owner, &g->outcome, why);
    return claim_release_queue(redis, &g->task, g->owner, why);
}

static void collected_answered(struct sending *g, enum err err, const struct why *why)
{
    g->told = g->retry.next == RETRY_DONE && !err;
    if (err && !g->s->redis_was_down)
        log_warn("claim_not_settled", LOG_STR("delivery", g->task.event.delivery),
                 LOG_STR("repo", g->task.repo), LOG_STR("error", str_of(why->text)));
    go_on(g);
}

/* The claim learns that the outcome has been told, so that a repeat is a plain duplicate. */
static enum err queue_stored(struct sending *g, struct why *why)
{
    g->outcome.outcome = OUTCOME_DUPLICATE;
    return claim_finish_queue(g->s->redis, &g->task, g->owner, &g->outcome, why);
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

void sendings_settle(struct sender *s)
{
    struct sending *g, *next;
    settle_all(&s->answered, queue_answered, collected_answered);
    DL_FOREACH_SAFE2(s->stored, g, next, turn_next)
    {
        if (g->told)
            continue;
        DL_DELETE2(s->stored, g, turn_prev, turn_next);
        finish(g);
    }
    settle_all(&s->stored, queue_stored, collected_stored);
}

bool sendings_unsettled(const struct sender *s)
{
    return s->answered || s->stored;
}

/* Which tasks start now: what is due is taken from its lane, claimed in one round trip, decided and
 * called. */
#include <inttypes.h>
#include <stdio.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "metrics.h"
#include "sender.h"

static struct dispatch_facts facts_of(struct task_in_hand *t, unsigned known)
{
    return (struct dispatch_facts){ .known = known,
                                    .is_expand = t->task.kind == TASK_EXPAND,
                                    .attempt = t->task.attempt,
                                    .now_ms = clock_mono_ms(),
                                    .jitter = sender_jitter(t->s) };
}

static struct task_in_hand *taken(struct lane_item *item)
{
    struct task_in_hand *t = (struct task_in_hand *)item;
    t->state = TASK_CLAIMING;
    t->owner[0] = 0;
    t->signed_ms = 0;
    return t;
}

/* A crash without Redis repeats all that was called past the oldest open record, so less is read
 * past it. */
static void note_redis(struct sender *s, bool answers, const char *reason)
{
    if (answers != s->redis_unavailable)
        return;
    if (!answers)
        log_warn("claims_unavailable", LOG_STR("tier", s->tier), LOG_STR("error", str_of(reason)));
    worker_limit_span(s->worker, answers ? 0 : SENDER_IN_HAND_RECORDS);
    s->redis_unavailable = !answers;
}

/* What Redis says of its claim. */
static void collect_claim(struct task_in_hand *t, struct dispatch_facts *facts, bool queued,
                          struct why *why)
{
    static const char *const names[] = {
        [CLAIM_TAKEN] = "taken", [CLAIM_FORGOTTEN] = "forgotten", [CLAIM_EXPIRED] = "expired",
        [CLAIM_BUSY] = "busy",   [CLAIM_DONE] = "done",           [CLAIM_SUPERSEDED] = "superseded",
    };
    struct claim_answer claim;
    bool answered = queued && !claim_collect(t->s->redis, &claim, why);
    note_redis(t->s, answered, why->text);
    metrics_add(role_metrics(t->s->role), M_CLAIMS,
                METRIC_LABELS(t->s->tier, str_of(answered ? names[claim.verdict] : "none")), 1);
    facts->known |= answered ? FACT_CLAIM_ASKED : FACT_REDIS_UNAVAILABLE;
    if (!answered)
        return;
    facts->claim = claim.verdict;
    facts->busy_until_ms = clock_mono_ms() + claim.wait_ms + 1;
    facts->outcome_unreadable = !claim.outcome.delivery_id[0];
    t->outcome = claim.outcome;
}

/* One round trip for all: they are queued first, then read in the same order; then GitHub is
 * called, whose budget is in Redis, too. */
static void claim_and_call(struct sender *s, struct task_in_hand *const *batch, size_t n)
{
    struct dispatch_facts facts[SENDER_IN_FLIGHT_MAX];
    struct why why = { "" };
    size_t queued = 0;
    s->claiming_ms = clock_boot_ms();
    for (size_t i = 0; i < n; i++) {
        struct task_in_hand *t = batch[i];
        t->claimed_ms = clock_wall_ms();
        snprintf(t->owner, sizeof(t->owner), "%s.%s.%" PRIu64, daemon_owner(role_daemon(s->role)),
                 s->tier.ptr, ++s->claims);
        if (queued == i && !claim_queue(s->redis, &t->task, t->owner, t->claimed_ms,
                                        task_can_be_superseded(&t->task), &why))
            queued++;
    }
    for (size_t i = 0; i < n; i++) {
        facts[i] = facts_of(batch[i], 0);
        collect_claim(batch[i], &facts[i], i < queued, &why);
    }
    for (size_t i = 0; i < n; i++) {
        struct task_in_hand *t = batch[i];
        facts[i].now_ms = clock_mono_ms();
        if (clock_boot_ms() > s->claiming_ms + CLAIM_HALF_MS)
            facts[i].known |= FACT_CLAIM_OLD;
        if (!worker_may_act(s->worker, s->claiming_ms))
            facts[i].known |= FACT_NOT_SURELY_OURS;
        struct dispatch_decision decision = dispatch_decide(&facts[i]);
        /* Asked last: an open one gives its only probe away. */
        if (decision.next == DISPATCH_CALL && t->task.kind != TASK_EXPAND &&
            !breaker_allows(s->breakers, t->task.repo, facts[i].now_ms)) {
            facts[i].known |= FACT_BREAKER_OPEN;
            facts[i].since_ms = breaker_open_since(s->breakers, t->task.repo, facts[i].now_ms);
            decision = dispatch_decide(&facts[i]);
        }
        task_follow(t, &decision);
    }
}

/* What waits for a slow downstream leaves the room in hand to others. */
static void park_stuck(struct sender *s)
{
    struct lane_item *item;
    int64_t since_ms;
    while ((item = lanes_take_stuck(s->lanes, clock_mono_ms(), &since_ms))) {
        struct task_in_hand *t = taken(item);
        struct dispatch_facts facts = facts_of(t, FACT_SLOW);
        facts.since_ms = since_ms;
        const struct dispatch_decision decision = dispatch_decide(&facts);
        task_follow(t, &decision);
    }
}

void tasks_start(struct sender *s)
{
    struct task_in_hand *batch[SENDER_IN_FLIGHT_MAX];
    struct lane_item *item;
    size_t n = 0;
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    while (s->in_flight + n < SENDER_IN_FLIGHT_MAX &&
           (item = lanes_take(s->lanes, clock_mono_ms()))) {
        struct task_in_hand *t = taken(item);
        const struct dispatch_facts facts = facts_of(
            t, dispatch_facts_of(&t->task, version->list, clock_wall_ms(), s->d->max_age_ms));
        const struct dispatch_decision decision = dispatch_decide(&facts);
        if (decision.next == DISPATCH_CLAIM)
            batch[n++] = t;
        else
            task_follow(t, &decision);
    }
    allowlist_feed_release(s->d->feed, version);
    if (n)
        claim_and_call(s, batch, n);
    park_stuck(s);
}

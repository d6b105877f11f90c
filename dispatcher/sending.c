/* From a record to a call: lane, allowlist, claim, GitHub. */
#include "sending.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/actions.h"
#include "../common/github/dispatch.h"
#include "metrics.h"
#include "route.h"

static const char *const verdict_names[] = {
    [CLAIM_TAKEN] = "taken", [CLAIM_FORGOTTEN] = "forgotten", [CLAIM_EXPIRED] = "expired",
    [CLAIM_BUSY] = "busy",   [CLAIM_DONE] = "done",           [CLAIM_SUPERSEDED] = "superseded",
};

static const char superseded[] = "a later event of this pull request was sent already";

double sender_jitter(struct sender *s)
{
    return (double)rand_r(&s->jitter) / RAND_MAX;
}

/* ---- reading ---- */

static void buried(void *opaque)
{
    record_done(opaque);
}

void sending_read(struct sender *s, struct record *record)
{
    struct why why;
    struct task task;
    enum err err = task_from_record(&task, record->key, &record->headers, &why);
    if (!err && task.level != s->level)
        err = why_set(&why, ERR_REFUSE, "a task of L%d in the topic of L%d", task.level, s->level);
    if (err) {
        log_warn("task_unreadable", LOG_STR("error", str_of(why.text)),
                 LOG_INT("partition", record->at.partition), LOG_INT("offset", record->at.offset));
        metrics_add(role_metrics(s->role), M_DLQ, METRIC_LABELS(s->tier, STR_LIT("poison")), 1);
        outbox_bury(s->outbox, s->d->topics.name[TOPIC_DLQ], record, "poison", why.text, buried,
                    record);
        return;
    }
    struct sending *g = mem_alloc(1, sizeof(*g));
    g->s = s;
    g->record = record;
    g->task = task;
    g->item.seq = task.seq;
    record->user = g;
    DL_APPEND(s->all, g);
    s->n++;
    lanes_put(s->lanes, task.lane, &g->item);
}

void sending_drop(struct sending *g)
{
    struct sender *s = g->s;
    if (g->out)
        lanes_end(s->lanes, &g->item);
    else if (g->item.lane)
        lanes_remove(s->lanes, &g->item);
    outbox_forget(s->outbox, g);
    expanding_drop(g->expanding);
    DL_DELETE(s->all, g);
    s->n--;
    record_drop(g->record);
    free(g);
}

/* ---- calling ---- */

static enum err sign_token(void *opaque, int64_t sent_ms, char **ret, struct why *why)
{
    struct sending *g = opaque;
    const struct task *task = &g->task;
    struct callback_token token = {
        .pr = task->event.pr,
        .dispatched_ms = sent_ms,
        .issued_s = sent_ms / 1000,
    };
    g->signed_ms = sent_ms;
    if (!str_copy(token.delivery, sizeof(token.delivery), task->event.delivery) ||
        !str_copy(token.repo, sizeof(token.repo), task->repo) ||
        (task->event.head_sha.ptr &&
         !str_copy(token.head_sha, sizeof(token.head_sha), task->event.head_sha)))
        return why_set(why, ERR_REFUSE, "delivery, repo or head_sha is too long");
    return callback_token_sign(g->s->d->callback_keys, &token, ret, why);
}

static enum err start_dispatch(struct sending *g, struct why *why)
{
    const struct task *task = &g->task;
    struct dispatch dispatch = {
        .repo = task->repo,
        .event_type = event_kind_name(task->event.kind),
        .delivery = task->event.delivery,
        .payload = g->record->value,
        .sign = g->s->d->callback_keys ? sign_token : NULL,
        .sign_opaque = g,
        .trimmed = task->payload_trimmed,
        .claimed_ms = g->s->claiming_ms,
    };
    return dispatch_start(g->s->github, &dispatch, sending_answered, g, why);
}

static enum err start_call(struct sending *g, struct why *why)
{
    const struct task *task = &g->task;
    if (task->kind == TASK_DISPATCH)
        return start_dispatch(g, why);
    return actions_rerun(g->s->github, task->repo, task->run_id, task->kind == TASK_RERUN_FAILED,
                         g->s->claiming_ms, sending_answered, g, why);
}

static bool is_expand(const struct sending *g)
{
    return g->task.kind == TASK_EXPAND;
}

/* Calls GitHub, unless it is known that it would not take the call now, or whose it is may have
 * changed since we asked. */
static void call(struct sending *g)
{
    struct sender *s = g->s;
    struct why why;
    int64_t now = clock_mono_ms();
    if (standstill_since(&s->standstill, s->claiming_ms, now)) {
        sending_unasked(g);
        sending_postpone(g, now, "this process stood still after it had claimed it");
        return;
    }
    g->calling = true;
    s->in_flight++;
    if (is_expand(g)) /* it asks Redis, which still has to answer the other claims: expand_all */
        return;
    enum err err = start_call(g, &why);
    if (!err)
        return;
    struct github_answer answer = github_unsent(s->github, g->task.repo, err, &why);
    sending_answered(g, &answer);
}

/* ---- claiming ---- */

bool sending_can_be_superseded(const struct task *task)
{
    return task->kind == TASK_DISPATCH && task->event.kind == EVENT_PULL_REQUEST &&
           !task->event.again.len;
}

static void back_to_lane(struct sending *g, int64_t until_ms)
{
    g->out = false;
    lanes_hold(g->s->lanes, &g->item, until_ms);
}

/* The first reason stays. An expand has no effect of its own. */
static void mark(struct sending *g, enum task_mark reason)
{
    if (!g->task.maybe_duplicate && !is_expand(g))
        g->task.maybe_duplicate = reason;
}

/* Without Redis a crash repeats all that was called past the oldest open record, so less is read
 * past it. */
static void redis_answers(struct sender *s, bool answers, const char *reason)
{
    if (!answers && !s->redis_unavailable)
        log_warn("claims_unavailable", LOG_STR("tier", s->tier), LOG_STR("error", str_of(reason)));
    if (answers == s->redis_unavailable)
        topic_reader_limit_span(s->reader, answers ? 0 : SENDER_IN_HAND_RECORDS);
    s->redis_unavailable = !answers;
}

static void without_claim(struct sending *g)
{
    struct sender *s = g->s;
    metrics_add(role_metrics(s->role), M_CLAIMS, METRIC_LABELS(s->tier, STR_LIT("none")), 1);
    mark(g, MARK_NO_CLAIM);
    call(g);
}

static void act_on(struct sending *g, const struct claim_answer *claim)
{
    struct sender *s = g->s;
    metrics_add(role_metrics(s->role), M_CLAIMS,
                METRIC_LABELS(s->tier, str_of(verdict_names[claim->verdict])), 1);
    switch (claim->verdict) {
    case CLAIM_TAKEN: /* also after CLAIM_BUSY: its owner gave it back, and so did not call */
        call(g);
        break;
    case CLAIM_EXPIRED:
        mark(g, MARK_CLAIM_EXPIRED);
        call(g);
        break;
    case CLAIM_FORGOTTEN:
        mark(g, MARK_NO_CLAIM);
        call(g);
        break;
    case CLAIM_BUSY:
        back_to_lane(g, clock_mono_ms() + claim->wait_ms + 1);
        break;
    case CLAIM_DONE:
        if (claim->outcome.delivery_id[0])
            sending_repeat(g, &claim->outcome);
        else
            sending_skip(g, OUTCOME_DUPLICATE, "it was sent; what was stored of it is unreadable");
        break;
    case CLAIM_SUPERSEDED:
        sending_skip(g, OUTCOME_SUPERSEDED, superseded);
        break;
    }
}

/* Names the attempt, also one that finds no Redis now: it may be back when the answer comes. */
static void name_owner(struct sending *g)
{
    struct sender *s = g->s;
    g->claimed_ms = clock_wall_ms();
    snprintf(g->owner, sizeof(g->owner), "%s.%s.%" PRIu64, daemon_owner(role_daemon(s->role)),
             s->tier.ptr, ++s->taken);
}

static void expand_all(struct sending *const *batch, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_expand(batch[i]) && batch[i]->calling)
            expanding_start(batch[i]);
}

/* One round trip for all: they are queued first, then read in the same order. */
static void claim_and_call(struct sender *s, struct sending *const *batch, size_t n)
{
    struct why why = { "" };
    size_t queued = 0;
    for (size_t i = 0; i < n; i++)
        name_owner(batch[i]);
    s->claiming_ms = clock_mono_ms();
    standstill_look(&s->standstill, s->claiming_ms);
    while (queued < n && claim_queue(s->redis, &batch[queued]->task, batch[queued]->owner,
                                     batch[queued]->claimed_ms,
                                     sending_can_be_superseded(&batch[queued]->task), &why) == OK)
        queued++;
    for (size_t i = 0; i < n; i++) {
        struct claim_answer claim;
        bool answered = i < queued && claim_collect(s->redis, &claim, &why) == OK;
        redis_answers(s, answered, why.text);
        if (answered)
            act_on(batch[i], &claim);
        else
            without_claim(batch[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (!batch[i]->calling && !batch[i]->answered)
            sending_unasked(batch[i]);
    expand_all(batch, n);
}

/* ---- starting ---- */

/* Behind all that waits for that downstream. */
static void put_off(struct sending *g, int64_t from_ms, const char *reason)
{
    sending_postpone(g, pace_next(g->s->pace, g->task.repo, from_ms, clock_mono_ms()), reason);
}

/* What waits for a slow downstream leaves the room in hand to others. */
static void put_off_stuck(struct sender *s)
{
    struct lane_item *item;
    int64_t now = clock_mono_ms();
    while ((item = lanes_take_stuck(s->lanes, now))) {
        struct sending *g = (struct sending *)item;
        g->out = true;
        g->owner[0] = 0;
        put_off(g, now + SENDER_SLOW_WAIT_MS, "the downstream is slow: all its places are taken");
    }
}

static bool breaker_refuses(struct sending *g)
{
    return !is_expand(g) &&
           !breaker_allows(g->s->breakers, g->task.repo, clock_mono_ms(), &g->probe);
}

/* Only when it is known whether the probe before them asks anything: else one of them is the next.
 */
static void put_off_refused(struct sending *refused)
{
    struct sending *g, *next;
    DL_FOREACH_SAFE2(refused, g, next, turn_next)
    {
        int64_t now = clock_mono_ms();
        DL_DELETE2(refused, g, turn_prev, turn_next);
        if (breaker_refuses(g)) {
            put_off(g, breaker_until(g->s->breakers, g->task.repo, now),
                    "the downstream failed again and again: its breaker is open");
        } else {
            sending_unasked(g);
            back_to_lane(g, now);
        }
    }
}

void sendings_start(struct sender *s)
{
    struct sending *batch[SENDER_IN_FLIGHT_MAX], *refused = NULL;
    struct lane_item *item;
    size_t n = 0;
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    while (s->in_flight + n < SENDER_IN_FLIGHT_MAX &&
           (item = lanes_take(s->lanes, clock_mono_ms()))) {
        struct sending *g = (struct sending *)item;
        g->out = true;
        g->owner[0] = 0;
        const char *reason =
            route_unwanted(&g->task, version->list, clock_wall_ms(), s->d->max_age_ms);
        if (reason)
            sending_skip(g, OUTCOME_SKIPPED, reason);
        else if (breaker_refuses(g))
            DL_APPEND2(refused, g, turn_prev, turn_next);
        else
            batch[n++] = g;
    }
    allowlist_feed_release(s->d->feed, version);
    if (n)
        claim_and_call(s, batch, n);
    put_off_refused(refused);
    put_off_stuck(s);
}

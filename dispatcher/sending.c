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

/* When Kafka is told again that calls may be made without a claim. */
#define TELL_AGAIN_MS 100
/* It is worth a word when that has failed for so long. */
#define TELL_FAILS_MS 1000
/* What Redis did not take is told again this often, when no claim is asked for. */
#define TELL_REDIS_MS 1000

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

/* What is replayed --again is wanted although it is old; it neither is superseded nor supersedes.
 */
static bool can_be_superseded(const struct task *task)
{
    return task->kind == TASK_DISPATCH && task->event.kind == EVENT_PULL_REQUEST &&
           !task->event.again.len;
}

bool sending_is_remembered(const struct task *task)
{
    return task->kind == TASK_DISPATCH && !task->event.again.len;
}

/* What became of it, or of a twin, in our hands: a record may be there twice (a sender parked it,
 * and another read its source again; librdkafka wrote it once more; GitHub sent the webhook again).
 */
static enum called_as called_before(const struct sending *g)
{
    return sending_is_remembered(&g->task)
               ? called_how(g->s->called, g->task.lane, g->task.event.delivery)
               : CALLED_NOT;
}

static void remember(struct sending *g, bool claimed)
{
    if (!sending_is_remembered(&g->task))
        return;
    g->task.maybe_duplicate |= called_before(g) == CALLED_MAYBE;
    called_put(g->s->called, g->task.lane, &g->task.seq, g->task.event.delivery,
               claimed || !can_be_superseded(&g->task));
}

/* It was sent by us, and Redis does not know. A claim that it took for this is told so. */
static bool skip_if_sent(struct sending *g, bool claimed)
{
    if (called_before(g) != CALLED_SENT)
        return false;
    g->told = claimed;
    sending_skip(g, OUTCOME_DUPLICATE, "this process has sent it");
    return true;
}

/* A newer event of its pull request was called by us, and Redis does not know, or not any more. */
static bool skip_if_older(struct sending *g, bool claimed)
{
    if (!can_be_superseded(&g->task) || !called_is_later(g->s->called, g->task.lane, &g->task.seq))
        return false;
    if (claimed)
        called_tell_again(g->s->called, g->task.lane);
    g->told = claimed;
    sending_skip(g, OUTCOME_SUPERSEDED, superseded);
    return true;
}

/* Somebody may have had this task, or its twin, in hand before: where Redis knows nothing, nobody
 * knows whether it was called. */
static bool was_anothers(const struct sending *g)
{
    return g->was_busy || g->task.reread ||
           dispatcher_reads_again(g->record, g->record->timestamp_ms);
}

/* Redis knows of no claim, but a call without one may have been made: by an earlier owner of the
 * partition, or for a twin of this record by us. */
static bool was_unclaimed(const struct sending *g)
{
    return record_was_unclaimed(g->record) ||
           (g->task.reread && record_may_be_unclaimed(g->record));
}

/* Says so once, when it lasts: a rebalance or another commit is in the way for a moment only. */
static void note_held_back(struct sender *s, enum err err, const struct why *why)
{
    int64_t now = clock_mono_ms();
    if (!err) {
        s->held_back_ms = 0;
        return;
    }
    if (!s->held_back_ms)
        s->held_back_ms = now + TELL_FAILS_MS;
    if (now < s->held_back_ms)
        return;
    log_warn("calls_held_back", LOG_STR("tier", s->tier), LOG_STR("error", str_of(why->text)));
    s->held_back_ms = INT64_MAX;
}

/* Whether whoever owns the partition after us will know that this may have been called: Kafka has
 * to be told before a call that Redis does not know of. One commit tells it of hundreds of records.
 */
static bool leaves_trace(struct sending *g)
{
    struct sender *s = g->s;
    struct why why;
    int64_t now = clock_mono_ms();
    if (record_may_be_unclaimed(g->record))
        return true;
    if (now < s->tell_kafka_ms)
        return false;
    standstill_look(&s->standstill, now);
    note_held_back(s, topic_reader_tell_unclaimed(s->reader, &why), &why);
    /* It may take its time. Kafka takes it from the partition's owner only, or no call is made. */
    s->standstill.seen_ms = clock_mono_ms();
    /* The longer it took the longer the pause: Kafka away does not stop what is under way. */
    s->tell_kafka_ms = clock_mono_ms() + TELL_AGAIN_MS + (clock_mono_ms() - now);
    return record_may_be_unclaimed(g->record);
}

static void back_to_lane(struct sending *g, int64_t until_ms)
{
    g->out = false;
    lanes_hold(g->s->lanes, &g->item, until_ms);
}

static void without_claim(struct sending *g, const char *reason)
{
    struct sender *s = g->s;
    if (!s->redis_was_down)
        log_warn("claims_unavailable", LOG_STR("tier", s->tier), LOG_STR("error", str_of(reason)));
    s->redis_was_down = true;
    if (skip_if_sent(g, false) || skip_if_older(g, false))
        return;
    if (!is_expand(g) && !leaves_trace(g)) {
        back_to_lane(g, clock_mono_ms() + TELL_AGAIN_MS);
        return;
    }
    metrics_add(role_metrics(s->role), M_CLAIMS, METRIC_LABELS(s->tier, STR_LIT("none")), 1);
    g->task.maybe_duplicate |= !is_expand(g) && was_anothers(g);
    remember(g, false);
    call(g);
}

static void call_claimed(struct sending *g)
{
    if (skip_if_sent(g, true) || skip_if_older(g, true))
        return;
    remember(g, true);
    call(g);
}

static void act_on(struct sending *g, const struct claim_answer *claim)
{
    struct sender *s = g->s;
    metrics_add(role_metrics(s->role), M_CLAIMS,
                METRIC_LABELS(s->tier, str_of(verdict_names[claim->verdict])), 1);
    s->redis_was_down = false;
    switch (claim->verdict) {
    case CLAIM_EXPIRED:
        g->task.maybe_duplicate = !is_expand(g); /* which has no effect of its own */
        call_claimed(g);
        break;
    case CLAIM_TAKEN: /* also after CLAIM_BUSY: its owner gave it back, and so did not call */
        g->task.maybe_duplicate |= !is_expand(g) && was_anothers(g) && was_unclaimed(g);
        call_claimed(g);
        break;
    case CLAIM_FORGOTTEN:
        g->task.maybe_duplicate |= !is_expand(g) && was_anothers(g);
        call_claimed(g);
        break;
    case CLAIM_BUSY:
        g->was_busy = true;
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

/* Before any claim is asked for: it is judged by the seqs that Redis has. */
static enum err tell_untold(struct sender *s, struct why *why)
{
    s->tell_redis_ms = clock_mono_ms() + TELL_REDIS_MS;
    return called_tell(s->called, s->redis, why);
}

/* One round trip for all: they are queued first, then read in the same order. */
static void claim_and_call(struct sender *s, struct sending *const *batch, size_t n)
{
    struct why why = { "" };
    size_t queued = 0;
    for (size_t i = 0; i < n; i++)
        name_owner(batch[i]);
    bool told = tell_untold(s, &why) == OK;
    s->claiming_ms = clock_mono_ms();
    standstill_look(&s->standstill, s->claiming_ms);
    while (told && queued < n &&
           claim_queue(s->redis, &batch[queued]->task, batch[queued]->owner,
                       batch[queued]->claimed_ms, can_be_superseded(&batch[queued]->task),
                       &why) == OK)
        queued++;
    for (size_t i = 0; i < n; i++) {
        struct claim_answer claim;
        if (i >= queued || claim_collect(s->redis, &claim, &why))
            without_claim(batch[i], why.text);
        else
            act_on(batch[i], &claim);
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
    if (n || clock_mono_ms() >= s->tell_redis_ms)
        claim_and_call(s, batch, n);
    put_off_refused(refused);
    put_off_stuck(s);
}

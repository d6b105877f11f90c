/* The delay topics: a parked record goes back under its own key to the topic in its header
 * to_topic, at the time in its header not_before_ms. Keeps no order and counts no attempt.
 *
 * The producer chooses the partition by that topic (topic_delay_place), so that a tier waits behind
 * no other. Up to 256 records of a partition are in hand, by due time: a long wait holds up what is
 * due behind it only when there are 256 of them. */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/mem.h"
#include "../common/worker/dlq.h"
#include "../common/worker/retry_ladder.h"
#include "../common/worker/worker.h"
#include "dispatcher.h"
#include "metrics.h"

/* Of a partition. With 6 in each of 4 topics, and 2 in each of the reporter's 3, at most 120 MiB
 * are in hand, however much waits: a quarter of what a dispatcher may take (deploy/k8s). */
#define IN_HAND_RECORDS 256
#define IN_HAND_BYTES   (4u << 20)
/* No wait is longer than a day; the rest is for clock skew. */
#define WAIT_MAX_MS     (25 * 3600000LL)
#define TICK_MS         1000

/* All topics that a record may go back to; topic_delay_may says from which delay topic. */
static const enum topic targets[] = { TOPIC_DISPATCH_L1, TOPIC_DISPATCH_L2, TOPIC_DISPATCH_L3,
                                      TOPIC_DISPATCH_L4, TOPIC_CALLBACKS,   TOPIC_RECONCILE };
#define N_TARGETS (sizeof(targets) / sizeof(targets[0]))

struct delay {
    struct role_ctx *role;
    struct dispatcher *d;
    struct worker *worker;
    struct parked *waiting; /* by due_ms */
    size_t n_leaving;
};

struct parked {
    struct parked *prev, *next;
    struct delay *delay;
    struct work *work;
    enum topic to;
    int64_t due_ms; /* monotonic: setting the wall clock changes no wait */
    bool leaving;   /* in flight back to its topic; not in delay.waiting */
};

/* ---- one record ---- */

static void returned(void *opaque)
{
    struct parked *p = opaque;
    FAULT_POINT("delay.republished");
    p->delay->n_leaving--;
    work_done(p->work);
    free(p);
}

/* The target topic refused it: a record of another producer may be too large for it. */
static bool refused(void *opaque, enum err err, const char *reason)
{
    struct parked *p = opaque;
    char text[256];
    if (err != ERR_REFUSE)
        return false;
    snprintf(text, sizeof(text), "cannot be put back to %s: %s", p->delay->d->topics.name[p->to],
             reason);
    work_dead(p->work, "refused", text);
    return true;
}

static void release(struct parked *p)
{
    struct delay *d = p->delay;
    const struct record *record = p->work->record;
    struct headers headers;
    headers_copy(&headers, &record->headers);
    headers_remove(&headers, "to_topic");
    headers_remove(&headers, "not_before_ms");
    headers_remove(&headers, "error");
    const struct post post = {
        .topic = p->to,
        .key = record->key,
        .value = record->value,
        .lasting = true,
        .headers = &headers,
        .failed = refused,
        .opaque = p,
    };
    enum topic from = topics_find(&d->d->topics, str_of(record->at.topic));
    metrics_add(role_metrics(d->role), M_RELEASED, METRIC_LABELS(str_of(topic_base_name(from))), 1);
    DL_DELETE(d->waiting, p);
    p->leaving = true;
    d->n_leaving++;
    work_put(p->work, &post);
    work_then(p->work, returned, p);
}

static int by_due(const struct parked *a, const struct parked *b)
{
    return (a->due_ms > b->due_ms) - (a->due_ms < b->due_ms);
}

static void delay_take(void *opaque, struct work *work)
{
    struct delay *d = opaque;
    const struct record *record = work->record;
    enum topic to = topics_find(&d->d->topics, headers_get(&record->headers, "to_topic"));
    enum topic from = topics_find(&d->d->topics, str_of(record->at.topic));
    int64_t not_before_ms = headers_get_i64(&record->headers, "not_before_ms", -1);
    int64_t longest_ms = delay_topic_ms(from);
    int64_t wait_ms = not_before_ms < 0 ? 0 : not_before_ms - clock_wall_ms();
    const char *poison = NULL;
    if (longest_ms == delay_topic_ms(TOPIC_DELAY_1H))
        longest_ms = WAIT_MAX_MS;
    if (!topic_delay_may(from, to))
        poison = "header to_topic is not callbacks, reconcile or, in delay.*, dispatch.l1…l4";
    else if (not_before_ms < 0)
        poison = "header not_before_ms is not a time";
    else if (wait_ms > WAIT_MAX_MS)
        poison = "header not_before_ms is more than a day ahead";
    else if (!dlq_fits(record->key, record->value, &record->headers))
        poison = "too large to be put back";
    if (poison) {
        work_dead(work, "poison", poison);
        work_done(work);
        return;
    }
    /* Further ahead than the topic's longest wait: the producer's clock was ahead. Use that wait.
     */
    if (wait_ms > longest_ms + DISPATCHER_CLOCKS_MS)
        wait_ms = longest_ms;
    struct parked *p = mem_alloc(1, sizeof(*p));
    p->delay = d;
    p->work = work;
    p->to = to;
    p->due_ms = clock_mono_ms() + wait_ms;
    work->user = p;
    DL_INSERT_INORDER(d->waiting, p, by_due);
}

static int delay_tick(void *opaque)
{
    struct delay *d = opaque;
    while (d->waiting && d->waiting->due_ms <= clock_mono_ms())
        release(d->waiting);
    role_waiting(d->role, d->waiting && !d->n_leaving);
    int64_t wait_ms = d->waiting ? d->waiting->due_ms - clock_mono_ms() : TICK_MS;
    return wait_ms < 0 ? 0 : wait_ms < TICK_MS ? (int)wait_ms : TICK_MS;
}

/* Drops what waits; what is in flight back to its topic may be stored. */
static void delay_drop(void *opaque, struct work *work)
{
    struct delay *d = opaque;
    struct parked *p = work->user;
    if (p->leaving)
        return;
    DL_DELETE(d->waiting, p);
    work_drop(work);
    free(p);
}

static void delay_forget(void *opaque, struct work *work)
{
    (void)opaque;
    free(work->user);
}

enum err delay_run(struct role_ctx *role, void *opaque, struct why *why)
{
    struct dispatcher *dispatcher = opaque;
    static const struct worker_role does = {
        .take = delay_take, .tick = delay_tick, .drop = delay_drop, .forget = delay_forget
    };
    struct delay d = { .role = role, .d = dispatcher };
    size_t n_delays;
    const enum topic *delays = topics_of_group(GROUP_DELAY, &n_delays);
    const struct worker_options options = {
        .role = role,
        .kafka = &dispatcher->kafka,
        .topics = &dispatcher->topics,
        .group = GROUP_DELAY,
        .reads = delays,
        .n_reads = n_delays,
        .writes = targets,
        .n_writes = N_TARGETS,
        .max_in_hand = IN_HAND_RECORDS,
        .max_in_hand_bytes = IN_HAND_BYTES,
        .metrics = dispatcher_worker_metrics,
        .does = &does,
        .opaque = &d,
    };
    enum err err = worker_new(&d.worker, &options, why);
    if (!err)
        err = worker_read(d.worker, why);
    if (!err)
        err = worker_run(d.worker, why);
    worker_free(d.worker);
    return err;
}

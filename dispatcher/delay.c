/* The delay topics: a parked record comes back under its own key to the topic it names, when the
 * time it names has come. Nothing else: no order is kept and no attempt counted here.
 *
 * Whoever puts off chooses the partition by where it goes back to (topic_delay_place), so that a
 * tier waits behind its own only. Records in hand are kept by due time; at most 256 of a partition,
 * so that a long wait in front does not hold up what is due behind it for long. */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/topic_reader.h"
#include "../common/model/burial.h"
#include "dispatcher.h"
#include "metrics.h"
#include "outbox.h"

/* Of a partition. With 6 in each of 4 topics at most 96 MiB are in hand, however much waits: a
 * fifth of what a dispatcher may take (deploy/k8s). Of tasks as long as GitHub takes them, 59 KB,
 * 71 are 4 MiB. */
#define IN_HAND_RECORDS 256
#define IN_HAND_BYTES   (4u << 20)
#define READ_MAX        256
#define TICK_MS         1000
#define DRAIN_MS        10000
/* No wait of ours is longer than a day; the rest is for clocks that differ. */
#define WAIT_MAX_MS     (25 * 3600000LL)

/* What may come back: tasks of the senders, and what the reporter put off. */
static const enum topic targets[] = { TOPIC_DISPATCH_L1, TOPIC_DISPATCH_L2, TOPIC_DISPATCH_L3,
                                      TOPIC_DISPATCH_L4, TOPIC_CALLBACKS,   TOPIC_RECONCILE };
#define N_TARGETS (sizeof(targets) / sizeof(targets[0]))

static const enum topic delay_topics[] = { TOPIC_DELAY_10S, TOPIC_DELAY_1M, TOPIC_DELAY_10M,
                                           TOPIC_DELAY_1H };
/* The longest wait that belongs into each; in the last all that is longer, too. */
static const int64_t longest_ms[] = { 10000, 60000, 600000, WAIT_MAX_MS };
#define N_DELAYS (sizeof(delay_topics) / sizeof(delay_topics[0]))

struct delay {
    struct role_ctx *role;
    struct dispatcher *d;
    struct outbox *outbox;
    struct topic_reader *reader;
    struct parked *parked; /* by due_ms */
    struct parked *leaving;
    int64_t started_ms;
};

struct parked {
    struct parked *prev, *next;
    struct delay *delay;
    struct record *record;
    const char *to_topic; /* in d->topics */
    int64_t due_ms;       /* monotonic: a clock that is set changes no wait */
};

/* ---- one record ---- */

static void left(void *opaque)
{
    struct parked *p = opaque;
    FAULT_POINT("delay.republished");
    DL_DELETE(p->delay->leaving, p);
    role_progress(p->delay->role);
    record_done(p->record);
    free(p);
}

static void bury(struct delay *d, struct parked *p, const char *cls, const char *reason)
{
    log_warn("parked_buried", LOG_STR("class", str_of(cls)), LOG_STR("error", str_of(reason)),
             LOG_STR("topic", str_of(p->record->at.topic)),
             LOG_INT("partition", p->record->at.partition),
             LOG_INT("offset", p->record->at.offset));
    metrics_add(role_metrics(d->role), M_DLQ, METRIC_LABELS(STR_LIT("delay"), str_of(cls)), 1);
    DL_APPEND(d->leaving, p);
    outbox_bury(d->outbox, d->d->topics.name[TOPIC_DLQ], p->record, cls, reason, left, p);
}

/* By the topic that it was to go back to: what others wrote may be larger than that takes. */
static void refused(void *opaque, const char *reason)
{
    struct parked *p = opaque;
    char text[256];
    snprintf(text, sizeof(text), "cannot be put back to %s: %s", p->to_topic, reason);
    DL_DELETE(p->delay->leaving, p);
    bury(p->delay, p, "refused", text);
}

static void release(struct delay *d, struct parked *p)
{
    struct headers headers;
    headers_copy(&headers, &p->record->headers);
    headers_remove(&headers, "to_topic");
    headers_remove(&headers, "not_before_ms");
    headers_remove(&headers, "error");
    struct post post = {
        .topic = p->to_topic,
        .key = p->record->key,
        .value = p->record->value,
        .lasting = true,
        .headers = &headers,
        .refused = refused,
    };
    enum topic from = topics_find(&d->d->topics, str_of(p->record->at.topic));
    metrics_add(role_metrics(d->role), M_RELEASED, METRIC_LABELS(str_of(topic_base_name(from))), 1);
    DL_DELETE(d->parked, p);
    DL_APPEND(d->leaving, p);
    outbox_put(d->outbox, &post, left, p);
}

static int by_due(const struct parked *a, const struct parked *b)
{
    return (a->due_ms > b->due_ms) - (a->due_ms < b->due_ms);
}

/* The full name of the topic that a record names; NULL when it may not go there. */
static const char *target_of(const struct delay *d, const struct record *record)
{
    enum topic to = topics_find(&d->d->topics, headers_get(&record->headers, "to_topic"));
    for (size_t i = 0; i < N_TARGETS; i++)
        if (targets[i] == to)
            return d->d->topics.name[to];
    return NULL;
}

/* How long a record waits from now. A time further ahead than the topic's waits are long was read
 * from a clock that ran ahead: what it was meant to be nobody knows; it is not later than the
 * longest. */
static int64_t left_ms(const struct delay *d, const struct record *record, int64_t not_before_ms)
{
    int64_t wait_ms = not_before_ms - clock_wall_ms();
    for (size_t i = 0; i < N_DELAYS; i++)
        if (str_is(str_of(record->at.topic), d->d->topics.name[delay_topics[i]]) &&
            wait_ms > longest_ms[i] + DISPATCHER_CLOCKS_MS)
            return longest_ms[i];
    return wait_ms;
}

static void take(struct delay *d, struct record *record)
{
    struct parked *p = mem_alloc(1, sizeof(*p));
    p->delay = d;
    p->record = record;
    p->to_topic = target_of(d, record);
    int64_t not_before_ms = headers_get_i64(&record->headers, "not_before_ms", -1);
    if (!p->to_topic) {
        bury(d, p, "poison", "header to_topic is not dispatch.l1…l4, callbacks or reconcile");
    } else if (not_before_ms < 0) {
        bury(d, p, "poison", "header not_before_ms is not a time");
    } else if (not_before_ms > clock_wall_ms() + WAIT_MAX_MS) {
        bury(d, p, "poison", "header not_before_ms is more than a day ahead");
    } else if (!burial_keeps_whole(record->key, record->value, &record->headers)) {
        bury(d, p, "poison", "too large to be put back");
    } else {
        p->due_ms = clock_mono_ms() + left_ms(d, record, not_before_ms);
        DL_INSERT_INORDER(d->parked, p, by_due);
    }
}

/* ---- partitions that go away ---- */

static bool any_leaving(const struct delay *d, const struct topic_position *partitions, size_t n)
{
    const struct parked *p;
    DL_FOREACH(d->leaving, p)
    if (!partitions || record_is_of(p->record, partitions, n))
        return true;
    return false;
}

static void drop(struct delay *d, struct parked **list, const struct topic_position *partitions,
                 size_t n)
{
    struct parked *p, *next;
    DL_FOREACH_SAFE(*list, p, next)
    {
        if (partitions && !record_is_of(p->record, partitions, n))
            continue;
        DL_DELETE(*list, p);
        outbox_forget(d->outbox, p);
        record_drop(p->record);
        free(p);
    }
}

/* What waits is dropped; what is on its way back may arrive until deadline_ms. */
static void give_up(struct delay *d, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    drop(d, &d->parked, partitions, n);
    while (any_leaving(d, partitions, n) && clock_mono_ms() < deadline_ms) {
        role_alive(d->role);
        outbox_flush(d->outbox, 50);
    }
    drop(d, &d->leaving, partitions, n);
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    give_up(opaque, partitions, n, deadline_ms);
}

/* ---- life ---- */

static enum err delay_init(struct delay *d, struct why *why)
{
    const struct topics *topics = &d->d->topics;
    const char *reads[N_DELAYS], *needed[N_DELAYS + N_TARGETS + 1];
    for (size_t i = 0; i < N_DELAYS; i++)
        needed[i] = reads[i] = topics->name[delay_topics[i]];
    for (size_t i = 0; i < N_TARGETS; i++)
        needed[N_DELAYS + i] = topics->name[targets[i]];
    needed[N_DELAYS + N_TARGETS] = topics->name[TOPIC_DLQ];
    enum err err = outbox_new(&d->outbox, &d->d->kafka, role_wake(d->role), role_metrics(d->role),
                              M_NOT_STORED, why);
    if (!err)
        outbox_declare(d->outbox, needed + N_DELAYS, N_TARGETS + 1);
    if (!err)
        err = role_wait_topics(d->role, outbox_writer(d->outbox), needed,
                               sizeof(needed) / sizeof(needed[0]), why);
    if (err)
        return err;
    struct topic_reader_options options = {
        .kafka = d->d->kafka,
        .group = topics->group[GROUP_DELAY],
        .topics = reads,
        .n_topics = N_DELAYS,
        .max_in_hand = IN_HAND_RECORDS,
        .max_in_hand_bytes = IN_HAND_BYTES,
        .wake = role_wake(d->role),
        .revoked = revoked,
        .opaque = d,
    };
    return topic_reader_new(&d->reader, &options, why);
}

static int wait_ms(const struct delay *d, bool more)
{
    int64_t wait = d->parked ? d->parked->due_ms - clock_mono_ms() : TICK_MS;
    if (more || wait < 0)
        return 0;
    return wait > TICK_MS ? TICK_MS : (int)wait;
}

static enum err turn(struct delay *d, struct why *why)
{
    struct record *record = NULL;
    role_alive(d->role);
    wake_reset(role_wake(d->role));
    for (int i = 0; i < READ_MAX && (record = topic_reader_next(d->reader, 0)); i++)
        take(d, record);
    while (d->parked && d->parked->due_ms <= clock_mono_ms())
        release(d, d->parked);
    outbox_turn(d->outbox);
    role_reads(d->role, d->reader);
    role_waiting(d->role, d->parked && !d->leaving);
    dispatcher_ready(d->role, d->reader, d->started_ms);
    if (topic_reader_fatal(d->reader, why) || outbox_fatal(d->outbox, why))
        return ERR_STOP;
    wake_wait(role_wake(d->role), wait_ms(d, record != NULL));
    return OK;
}

enum err delay_run(struct role_ctx *role, struct dispatcher *dispatcher, struct why *why)
{
    struct delay d = { .role = role, .d = dispatcher, .started_ms = clock_mono_ms() };
    role_declare_dlq(role, M_DLQ, STR_LIT("delay"));
    enum err err = delay_init(&d, why);
    while (!err && !role_stopping(role))
        err = turn(&d, why);
    if (d.outbox)
        give_up(&d, NULL, 0, clock_mono_ms() + DRAIN_MS);
    topic_reader_free(d.reader);
    outbox_free(d.outbox);
    return err;
}

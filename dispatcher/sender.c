/* One tier's loop. */
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/model/ids.h"
#include "metrics.h"
#include "sending.h"

#define READ_MAX      64                         /* records a turn */
#define IN_HAND_BYTES (1u << 20)                 /* a partition */
#define ENOUGH        (2 * SENDER_IN_FLIGHT_MAX) /* in hand, while all calls are under way */
#define ASK_MS        200                        /* the reader all the same: its membership */
#define TICK_MS       1000
#define DRAIN_MS      20000
#define FLUSH_MS      3000

/* ---- partitions that go away ---- */

/* Drops what has not been started; returns how many are under way still. */
static size_t drop_idle(struct sender *s, const struct topic_position *partitions, size_t n)
{
    struct sending *g, *next;
    size_t busy = 0;
    DL_FOREACH_SAFE(s->all, g, next)
    {
        if (partitions && !record_is_of(g->record, partitions, n))
            continue;
        if (g->calling || g->answered || g->ending)
            busy++;
        else
            sending_drop(g);
    }
    return busy;
}

/* Lets what is under way end, until deadline_ms. Other partitions' tasks go on meanwhile. */
static void drain(struct sender *s, const struct topic_position *partitions, size_t n,
                  int64_t deadline_ms)
{
    while (drop_idle(s, partitions, n) && clock_mono_ms() < deadline_ms) {
        role_alive(s->role);
        wake_reset(role_wake(s->role));
        if (partitions)
            sendings_start(s);
        http_client_poll(s->client, role_wake(s->role), sendings_unsettled(s) ? 0 : 50);
        outbox_turn(s->outbox);
        sendings_settle(s);
    }
}

static void breaker_forgotten(void *opaque, struct str repo)
{
    struct sender *s = opaque;
    metrics_set(role_metrics(s->role), M_BREAKER_OPEN, METRIC_LABELS(repo), 0);
    log_info("breaker_forgotten", LOG_STR("repo", repo), LOG_STR("tier", s->tier));
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    struct sender *s = opaque;
    struct sending *g;
    drain(s, partitions, n, deadline_ms);
    DL_FOREACH(s->all, g)
    if (record_is_of(g->record, partitions, n))
        g->lost = true; /* its answer still settles the claim and is told */
    /* What waits for a downstream may be another's now, who finds out for himself. */
    breakers_forget(s->breakers, INT64_MAX, breaker_forgotten, s);
}

/* ---- life ---- */

static void sender_free(struct sender *s)
{
    /* In this order: GitHub's calls answer to the sendings, which answer to the outbox; only then
     * may the records and the reader go. */
    struct sending *g, *next;
    github_free(s->github);
    http_client_free(s->client);
    sendings_settle(s);
    if (s->outbox)
        outbox_flush(s->outbox, FLUSH_MS);
    sendings_settle(s);
    DL_FOREACH_SAFE(s->all, g, next)
    sending_drop(g);
    topic_reader_free(s->reader);
    outbox_free(s->outbox);
    redis_free(s->redis);
    redis_free(s->budget);
    lanes_free(s->lanes);
    breakers_free(s->breakers);
    pace_free(s->pace);
}

static enum err sender_init(struct sender *s, struct why *why)
{
    struct topics *topics = &s->d->topics;
    const char *tier_topic = topics->name[topic_of_tier(s->level)];
    const char *const writes[] = { topics->name[TOPIC_DISPATCHES],  topics->name[TOPIC_DLQ],
                                   topics->name[TOPIC_DELAY_10S],   topics->name[TOPIC_DELAY_1M],
                                   topics->name[TOPIC_DELAY_10M],   topics->name[TOPIC_DELAY_1H],
                                   topics->name[TOPIC_DISPATCH_L3], /* what an expand becomes */
                                   topics->name[TOPIC_DISPATCH_L4], tier_topic };
    /* A place for each call: one that waited for a connection would run into its time-out there. */
    struct http_client_options http = s->d->http;
    http.max_connections_host = SENDER_IN_FLIGHT_MAX;
    http.only_fresh = true; /* a claim may be another's after a standstill */
    s->lanes = lanes_new(SENDER_DOWNSTREAM_MAX);
    s->breakers = breakers_new();
    s->pace = pace_new();
    s->jitter = (unsigned)clock_mono_us();
    enum err err = dispatcher_redis(s->d, &s->redis, why);
    if (!err)
        err = dispatcher_redis(s->d, &s->budget, why);
    if (!err)
        err = http_client_new(&s->client, &http, why);
    if (!err)
        err = dispatcher_github(s->d, s->client, s->level, s->budget, &s->github, why);
    if (!err)
        err = outbox_new(&s->outbox, &s->d->kafka, role_wake(s->role), role_metrics(s->role),
                         M_NOT_STORED, why);
    if (!err)
        outbox_declare(s->outbox, writes, sizeof(writes) / sizeof(writes[0]));
    if (!err)
        err = role_wait_topics(s->role, outbox_writer(s->outbox), writes,
                               sizeof(writes) / sizeof(writes[0]), why);
    if (err)
        return err;
    dispatcher_wait_allowlist(s->role, s->d);
    struct topic_reader_options options = {
        .kafka = s->d->kafka,
        .group = topics->group[group_of_tier(s->level)],
        .topics = &tier_topic,
        .n_topics = 1,
        .max_in_hand = SENDER_IN_HAND_RECORDS,
        .max_in_hand_bytes = IN_HAND_BYTES,
        .wake = role_wake(s->role),
        .revoked = revoked,
        .opaque = s,
    };
    return topic_reader_new(&s->reader, &options, why);
}

/* ---- the loop ---- */

/* What is left with librdkafka costs less than what we take and must pause for: a pause throws away
 * what was fetched. */
static bool has_enough(struct sender *s)
{
    int64_t now = clock_mono_ms();
    if (s->in_flight >= SENDER_IN_FLIGHT_MAX && s->n >= ENOUGH && now < s->ask_ms)
        return true;
    s->ask_ms = now + ASK_MS;
    return false;
}

/* True when there may be more. */
static bool read_some(struct sender *s)
{
    if (has_enough(s))
        return false;
    for (int i = 0; i < READ_MAX; i++) {
        struct record *record = topic_reader_next(s->reader, 0);
        if (!record)
            return false;
        sending_read(s, record);
    }
    return true;
}

/* Until a lane is due; the rest comes as a wake-up. */
static int wait_ms(const struct sender *s, bool more)
{
    if (more || sendings_unsettled(s))
        return 0;
    if (s->in_flight >= SENDER_IN_FLIGHT_MAX)
        return TICK_MS;
    int64_t wait = lanes_due(s->lanes) - clock_mono_ms();
    if (wait < 0)
        return 0;
    return wait > TICK_MS ? TICK_MS : (int)wait;
}

static void tell(struct sender *s)
{
    const struct str *tier = METRIC_LABELS(s->tier);
    metrics_set(role_metrics(s->role), M_IN_FLIGHT, tier, (double)s->in_flight);
    metrics_set(role_metrics(s->role), M_IN_HAND, tier, (double)s->n);
    breakers_forget(s->breakers, clock_mono_ms() - BREAKER_IDLE_MS, breaker_forgotten, s);
    github_tell_budget(s->github, role_metrics(s->role), &dispatcher_budget_families, s->tier);
    role_reads(s->role, s->reader);
    role_waiting(s->role, s->n && !s->in_flight && lanes_due(s->lanes) > clock_mono_ms());
    dispatcher_ready(s->role, s->reader, s->started_ms);
}

static enum err turn(struct sender *s, struct why *why)
{
    role_alive(s->role);
    wake_reset(role_wake(s->role));
    outbox_turn(s->outbox);
    sendings_settle(s);
    bool more = read_some(s);
    sendings_start(s);
    tell(s);
    if (topic_reader_fatal(s->reader, why) || outbox_fatal(s->outbox, why))
        return ERR_STOP;
    http_client_poll(s->client, role_wake(s->role), wait_ms(s, more));
    return OK;
}

enum err sender_run(struct role_ctx *role, struct dispatcher *d, int level, struct why *why)
{
    struct sender s = { .role = role,
                        .d = d,
                        .level = level,
                        .tier = str_of(level_name(level)),
                        .started_ms = clock_mono_ms() };
    role_declare_dlq(role, M_DLQ, s.tier);
    metrics_add(role_metrics(role), M_CLAIMS, METRIC_LABELS(s.tier, STR_LIT("none")), 0);
    for (enum task_mark mark = MARK_ANSWER_UNSEEN; mark <= MARK_NO_CLAIM; mark++)
        metrics_add(role_metrics(role), M_MAYBE_DUPLICATE,
                    METRIC_LABELS(s.tier, str_of(task_mark_name(mark))), 0);
    enum err err = sender_init(&s, why);
    while (!err && !role_stopping(role))
        err = turn(&s, why);
    if (!err)
        drain(&s, NULL, 0, clock_mono_ms() + DRAIN_MS);
    sender_free(&s);
    return err;
}

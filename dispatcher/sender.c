/* One tier's loop. */
#include "sender.h"

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/model/ids.h"
#include "metrics.h"

#define IN_HAND_BYTES (2u << 20)                 /* all partitions: 64 calls of 32 KB */
#define ENOUGH        (2 * SENDER_IN_FLIGHT_MAX) /* in hand, while all calls are in flight */
#define TICK_MS       1000
/* Due tasks wait for a call to end: one of this tier, which wakes it, or of another. */
#define CROWDED_MS    100

static void sender_take(void *opaque, struct work *work)
{
    tasks_take(opaque, work);
}

static void sender_drop(void *opaque, struct work *work)
{
    (void)opaque;
    if (work->user)
        task_drop(work->user);
}

static void sender_forget(void *opaque, struct work *work)
{
    (void)opaque;
    task_forget(work->user);
}

/* As many calls of an account are in flight as may be: its tasks stay in their lanes. */
static bool sender_may(void *opaque, struct str downstream)
{
    struct sender *s = opaque;
    return github_reserve(s->clients.github, downstream);
}

static bool sender_full(void *opaque)
{
    const struct sender *s = opaque;
    size_t in_hand = worker_in_hand(s->worker);
    return in_hand >= SENDER_IN_HAND_TASKS || worker_in_hand_bytes(s->worker) >= IN_HAND_BYTES ||
           (s->in_flight >= SENDER_IN_FLIGHT_MAX && in_hand >= ENOUGH);
}

/* The gate is shared by all tiers; whichever polls first reports. */
static void report_breakers(struct sender *s)
{
    struct gate_news news;
    while (gate_news(s->d->gate, &news)) {
        const struct str account = str_of(news.account);
        metrics_set(role_metrics(s->role), M_BREAKER_OPEN, METRIC_LABELS(account), news.open);
        if (news.open)
            log_warn("breaker_opened", LOG_STR("account", account),
                     LOG_STR("error", str_of(news.error)), LOG_INT("probe_ms", GATE_PROBE_MS));
        else
            log_info(news.forgotten ? "breaker_forgotten" : "breaker_closed",
                     LOG_STR("account", account));
    }
}

static int sender_tick(void *opaque)
{
    struct sender *s = opaque;
    struct metrics *m = role_metrics(s->role);
    const struct str *tier = METRIC_LABELS(s->tier);
    tasks_finish(s);
    tasks_start(s);
    int64_t now_ms = clock_mono_ms(), due_ms = lanes_due(s->lanes);
    size_t in_hand = worker_in_hand(s->worker);
    metrics_set(m, M_IN_FLIGHT, tier, (double)s->in_flight);
    metrics_set(m, M_IN_HAND, tier, (double)in_hand);
    report_breakers(s);
    github_report(s->clients.github, m, &dispatcher_budget_families, s->tier);
    role_waiting(s->role, in_hand && !s->in_flight && (!due_ms || due_ms > now_ms));
    if (s->finishing)
        return 0;
    if (!due_ms || s->in_flight >= SENDER_IN_FLIGHT_MAX)
        return CROWDED_MS;
    if (due_ms <= now_ms)
        return 0;
    return due_ms - now_ms > TICK_MS ? TICK_MS : (int)(due_ms - now_ms);
}

static enum err sender_init(struct sender *s, struct why *why)
{
    static const struct worker_role does = { .take = sender_take,
                                             .tick = sender_tick,
                                             .drop = sender_drop,
                                             .forget = sender_forget,
                                             .full = sender_full };
    const enum topic reads[] = { topic_of_tier(s->level) };
    const enum topic writes[] = { TOPIC_DISPATCHES,  TOPIC_DELAY_10S,
                                  TOPIC_DELAY_1M,    TOPIC_DELAY_10M,
                                  TOPIC_DELAY_1H,    TOPIC_DISPATCH_L3, /* what an expand becomes */
                                  TOPIC_DISPATCH_L4, reads[0] };
    s->lanes = lanes_new(SENDER_DOWNSTREAM_MAX, sender_may, s);
    s->jitter = (unsigned)clock_mono_us();
    /* A connection for each call: one that waited for a connection could time out in the queue. */
    enum err err = dispatcher_clients(s->d, s->level, SENDER_IN_FLIGHT_MAX, &s->clients, why);
    if (err)
        return err;
    const struct worker_options options = {
        .role = s->role,
        .kafka = &s->d->kafka,
        .topics = &s->d->topics,
        .group = group_of_tier(s->level),
        .reads = reads,
        .n_reads = sizeof(reads) / sizeof(reads[0]),
        .writes = writes,
        .n_writes = sizeof(writes) / sizeof(writes[0]),
        .max_in_hand = SENDER_IN_HAND_RECORDS,
        .lingers = true, /* outcomes */
        .http = s->clients.http,
        .metrics = dispatcher_worker_metrics,
        .does = &does,
        .opaque = s,
    };
    err = worker_new(&s->worker, &options, why);
    if (err)
        return err;
    dispatcher_wait_allowlist(s->role, s->d);
    return worker_read(s->worker, why);
}

enum err sender_run(struct role_ctx *role, void *opaque, struct why *why)
{
    int level = role_name(role)[1] - '0'; /* "l1" … "l4" */
    struct sender s = {
        .role = role, .d = opaque, .level = level, .tier = str_of(level_name(level))
    };
    metrics_add(role_metrics(role), M_CLAIMS, METRIC_LABELS(s.tier, STR_LIT("none")), 0);
    for (enum task_mark mark = MARK_ANSWER_UNSEEN; mark <= MARK_NO_CLAIM; mark++)
        metrics_add(role_metrics(role), M_MAYBE_DUPLICATE,
                    METRIC_LABELS(s.tier, str_of(task_mark_name(mark))), 0);
    enum err err = sender_init(&s, why);
    if (!err)
        err = worker_run(s.worker, why);
    /* Calls in flight end as unknown; tasks_finish publishes that. */
    github_free(s.clients.github);
    http_client_free(s.clients.http);
    tasks_finish(&s);
    worker_free(s.worker);
    redis_free(s.clients.redis);
    lanes_free(s.lanes);
    return err;
}

/* Events → tasks, one for each downstream; and the allowlist, which says who they are. An event is
 * done when every task and every outcome that it became is stored. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/payload_fit.h"
#include "../common/io/redis.h"
#include "../common/io/topic_reader.h"
#include "../common/model/ids.h"
#include "allowlist_source.h"
#include "dispatcher.h"
#include "metrics.h"
#include "outbox.h"
#include "route.h"

#define IN_HAND_RECORDS 100 /* a partition */
#define IN_HAND_BYTES   (2u << 20)
/* On their way to the broker; no further event is read meanwhile. */
#define POSTS_MAX       2000
#define POSTS_MAX_BYTES (8u << 20)
#define READ_MAX        64
#define TRIMMED_MAX     (16u << 10)
#define TICK_MS         1000
#define DRAIN_MS        10000

struct router {
    struct role_ctx *role;
    struct dispatcher *d;
    struct http_client *client;
    struct github *github;
    struct redis *redis;
    struct outbox *outbox;
    struct allowlist_source *source;
    struct topic_reader *reader; /* NULL until there is an allowlist */
    struct routing *all;
    int64_t started_ms;
};

/* One event in hand. */
struct routing {
    struct routing *prev, *next;
    struct router *r;
    struct record *record;
    struct event event;
    struct task_seq seq;
    struct buf payload, trimmed; /* empty while the body goes out as it is */
    size_t posts;                /* not stored yet */
};

/* ---- the end of an event ---- */

static void routing_free(struct routing *g)
{
    DL_DELETE(g->r->all, g);
    buf_clear(&g->payload);
    buf_clear(&g->trimmed);
    free(g);
}

static void stored(void *opaque)
{
    struct routing *g = opaque;
    if (--g->posts)
        return;
    FAULT_POINT("router.stored");
    role_progress(g->r->role);
    record_done(g->record);
    routing_free(g);
}

static void routing_drop(struct routing *g)
{
    outbox_forget(g->r->outbox, g);
    record_drop(g->record);
    routing_free(g);
}

static void count(const struct routing *g, const char *result)
{
    metrics_add(role_metrics(g->r->role), M_EVENTS,
                METRIC_LABELS(str_of(event_kind_name(g->event.kind)), str_of(result)), 1);
}

static void bury(struct routing *g, const char *cls, const char *reason)
{
    struct router *r = g->r;
    log_warn("event_buried", LOG_STR("class", str_of(cls)), LOG_STR("error", str_of(reason)),
             LOG_INT("partition", g->record->at.partition),
             LOG_INT("offset", g->record->at.offset));
    metrics_add(role_metrics(r->role), M_DLQ, METRIC_LABELS(STR_LIT("router"), str_of(cls)), 1);
    count(g, cls);
    g->posts++;
    outbox_bury(r->outbox, r->d->topics.name[TOPIC_DLQ], g->record, cls, reason, stored, g);
}

/* ---- what an event becomes ---- */

static struct task task_for(const struct routing *g, const struct route *to)
{
    return (struct task){
        .event = g->event,
        .repo = to->repo,
        .level = to->level,
        .kind = to->kind,
        .run_id = to->run_id,
        .attempt = 1,
        .seq = g->seq,
        .payload_trimmed = g->trimmed.len ? buf_str(&g->trimmed) : STR_NONE,
    };
}

static void post_task(struct routing *g, const struct route *to)
{
    struct router *r = g->r;
    struct task task = task_for(g, to);
    struct str payload = g->payload.len ? buf_str(&g->payload) : g->record->value;
    g->posts++;
    outbox_task(r->outbox, &r->d->topics, &task, g->record->key,
                route_takes_payload(to->kind) ? payload : STR_LIT(""), stored, g);
    metrics_add(role_metrics(r->role), M_TASKS, METRIC_LABELS(str_of(level_name(to->level))), 1);
}

/* A downstream that gets no task still gets an outcome that says why. */
static void post_outcome(struct routing *g, const struct route *to, enum outcome_kind kind,
                         const char *reason)
{
    struct router *r = g->r;
    struct outcome outcome;
    struct task task = task_for(g, to);
    outcome_init(&outcome, &task);
    outcome.outcome = kind;
    outcome.at_ms = clock_wall_ms();
    outcome.latency_ms = outcome.at_ms - g->event.received_ms;
    str_copy(outcome.error, sizeof(outcome.error), str_of(reason));
    g->posts++;
    outbox_tell(r->outbox, r->d->topics.name[TOPIC_DISPATCHES], &outcome, stored, g);
    dispatcher_count_outcome(role_metrics(r->role), &outcome);
}

/* Once for all downstreams. */
static enum err fit(struct routing *g, struct why *why)
{
    if (g->record->value.len <= PAYLOAD_MAX_BYTES)
        return OK;
    return payload_fit(g->record->value, PAYLOAD_MAX_BYTES, &g->payload, &g->trimmed, why);
}

static bool any_payload(const struct routes *routes)
{
    for (size_t i = 0; i < routes->n; i++)
        if (!routes->at[i].skipped && route_takes_payload(routes->at[i].kind))
            return true;
    return false;
}

static void post_all(struct routing *g, const struct routes *routes, const char *unfit)
{
    size_t tasks = 0;
    for (size_t i = 0; i < routes->n; i++) {
        const struct route *to = &routes->at[i];
        if (to->skipped) {
            post_outcome(g, to, OUTCOME_SKIPPED, to->skipped);
        } else if (unfit && route_takes_payload(to->kind)) {
            post_outcome(g, to, OUTCOME_FAILED, unfit);
        } else {
            post_task(g, to);
            tasks++;
        }
    }
    const char *skipped = routes->nothing;
    if (!skipped && routes->n && !tasks)
        skipped = routes->at[0].skipped ? routes->at[0].skipped : unfit;
    count(g, tasks ? "routed" : "skipped");
    log_info("routed", LOG_STR("delivery", g->event.delivery),
             LOG_STR("kind", str_of(event_kind_name(g->event.kind))),
             LOG_STR("action", g->event.action), LOG_INT("pr", g->event.pr),
             LOG_STR("source", g->event.source), LOG_STR("again", g->event.again),
             LOG_INT("tasks", (int64_t)tasks),
             LOG_INT("wait_ms", clock_wall_ms() - g->event.received_ms),
             LOG_STR("trimmed", g->trimmed.len ? buf_str(&g->trimmed) : STR_NONE),
             LOG_STR("skipped", str_of(skipped)));
}

static enum err read_event(struct routing *g, struct event_facts *facts, struct why *why)
{
    enum err err = event_from_headers(&g->event, &g->record->headers, why);
    if (!err && !g->record->key.len)
        err = why_set(why, ERR_REFUSE, "an event without a key has no lane");
    if (!err)
        err = event_scan(g->event.kind, g->record->value, facts, why);
    g->seq = (struct task_seq){ 0, g->record->at.partition, g->record->at.offset };
    if (!err && g->event.kind == EVENT_PULL_REQUEST && facts->updated_at[0])
        err = clock_parse(str_of(facts->updated_at), &g->seq.updated_ms, why);
    return err;
}

static void route_event(struct router *r, struct record *record)
{
    struct why why;
    struct routes routes;
    struct event_facts facts;
    struct routing *g = mem_alloc(1, sizeof(*g));
    g->r = r;
    g->record = record;
    buf_init(&g->payload, PAYLOAD_MAX_BYTES);
    buf_init(&g->trimmed, TRIMMED_MAX);
    DL_APPEND(r->all, g);
    if (read_event(g, &facts, &why)) {
        bury(g, "poison", why.text);
        return;
    }
    if (g->event.kind == EVENT_PUSH)
        allowlist_source_pushed(r->source, &facts, record->value);
    const struct allowlist_version *version = allowlist_feed_get(r->d->feed);
    struct route_input in = { .event = &g->event,
                              .facts = &facts,
                              .list = version->list,
                              .now_ms = clock_wall_ms(),
                              .max_age_ms = r->d->max_age_ms,
                              .app_id = r->d->app_number };
    route(&in, &routes);
    bool unfit = any_payload(&routes) && fit(g, &why);
    if (unfit)
        bury(g, "refused", why.text);
    post_all(g, &routes, unfit ? why.text : NULL);
    routes_clear(&routes);
    allowlist_feed_release(r->d->feed, version);
    if (!g->posts) {
        record_done(record);
        routing_free(g);
    }
}

/* ---- partitions that go away ---- */

/* Every event in hand is on its way to the broker; what does not arrive in time is read again. */
static void give_up(struct router *r, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    struct routing *g, *next;
    while (r->all && outbox_pending(r->outbox) && clock_mono_ms() < deadline_ms) {
        role_alive(r->role);
        outbox_flush(r->outbox, 50);
    }
    DL_FOREACH_SAFE(r->all, g, next)
    if (!partitions || record_is_of(g->record, partitions, n))
        routing_drop(g);
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    give_up(opaque, partitions, n, deadline_ms);
}

/* ---- life ---- */

static void router_free(struct router *r)
{
    if (r->outbox)
        give_up(r, NULL, 0, clock_mono_ms() + DRAIN_MS);
    github_free(r->github);
    http_client_free(r->client);
    allowlist_source_free(r->source);
    topic_reader_free(r->reader);
    outbox_free(r->outbox);
    redis_free(r->redis);
}

static enum err router_init(struct router *r, struct why *why)
{
    const struct topics *t = &r->d->topics;
    const char *const topics[] = { t->name[TOPIC_EVENTS], /* the others are written */
                                   t->name[TOPIC_DISPATCH_L1], t->name[TOPIC_DISPATCH_L2],
                                   t->name[TOPIC_DISPATCH_L3], t->name[TOPIC_DISPATCH_L4],
                                   t->name[TOPIC_DISPATCHES],  t->name[TOPIC_ALLOWLIST],
                                   t->name[TOPIC_DLQ] };
    enum err err = dispatcher_redis(r->d, &r->redis, why);
    if (!err)
        err = http_client_new(&r->client, &r->d->http, why);
    if (!err)
        err = dispatcher_github(r->d, r->client, 0, r->redis, &r->github, why);
    if (!err)
        err = outbox_new(&r->outbox, &r->d->kafka, role_wake(r->role), role_metrics(r->role),
                         M_NOT_STORED, why);
    if (!err)
        outbox_declare(r->outbox, topics + 1, sizeof(topics) / sizeof(topics[0]) - 1);
    if (!err)
        err = role_wait_topics(r->role, outbox_writer(r->outbox), topics,
                               sizeof(topics) / sizeof(topics[0]), why);
    if (!err)
        r->source = allowlist_source_new(r->role, r->d, r->github, r->client, r->redis, r->outbox);
    return err;
}

/* Without an allowlist no event is read: the lag grows, nothing is lost. */
static enum err open_reader(struct router *r, struct why *why)
{
    const char *topic = r->d->topics.name[TOPIC_EVENTS];
    struct topic_reader_options options = {
        .kafka = r->d->kafka,
        .group = r->d->topics.group[GROUP_ROUTER],
        .topics = &topic,
        .n_topics = 1,
        .max_in_hand = IN_HAND_RECORDS,
        .max_in_hand_bytes = IN_HAND_BYTES,
        .wake = role_wake(r->role),
        .revoked = revoked,
        .opaque = r,
    };
    const struct allowlist_version *version = allowlist_feed_get(r->d->feed);
    bool ready = version->list != NULL;
    allowlist_feed_release(r->d->feed, version);
    if (ready)
        return topic_reader_new(&r->reader, &options, why);
    role_ready(r->role, allowlist_source_trouble(r->source));
    role_waiting(r->role, true);
    return OK;
}

static bool has_room(const struct router *r)
{
    return outbox_pending(r->outbox) < POSTS_MAX &&
           outbox_pending_bytes(r->outbox) < POSTS_MAX_BYTES;
}

/* True when there may be more. */
static bool read_some(struct router *r)
{
    for (int i = 0; i < READ_MAX && has_room(r); i++) {
        struct record *record = topic_reader_next(r->reader, 0);
        if (!record)
            return false;
        route_event(r, record);
    }
    return has_room(r);
}

static enum err turn(struct router *r, struct why *why)
{
    bool more = false;
    role_alive(r->role);
    wake_reset(role_wake(r->role));
    allowlist_source_turn(r->source);
    outbox_turn(r->outbox);
    if (!r->reader) {
        enum err err = open_reader(r, why);
        if (err)
            return err;
    } else {
        more = read_some(r);
        role_waiting(r->role, false);
        role_reads(r->role, r->reader);
        dispatcher_ready(r->role, r->reader, r->started_ms);
        if (topic_reader_fatal(r->reader, why))
            return ERR_STOP;
    }
    if (outbox_fatal(r->outbox, why))
        return ERR_STOP;
    int wait_ms = r->reader ? TICK_MS : 100; /* the feed of the allowlist wakes nobody */
    http_client_poll(r->client, role_wake(r->role), more ? 0 : wait_ms);
    return OK;
}

enum err router_run(struct role_ctx *role, struct dispatcher *d, struct why *why)
{
    struct router r = { .role = role, .d = d, .started_ms = clock_mono_ms() };
    role_declare_dlq(role, M_DLQ, STR_LIT("router"));
    enum err err = router_init(&r, why);
    while (!err && !role_stopping(role))
        err = turn(&r, why);
    router_free(&r);
    return err;
}

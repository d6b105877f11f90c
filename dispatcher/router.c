/* Events → tasks, one for each downstream; a record holds up to 16 of a tier. Also fetches the
 * allowlist, which names them. An event is done when all its tasks and outcomes are stored. */
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/payload_fit.h"
#include "../common/io/redis.h"
#include "../common/model/ids.h"
#include "allowlist_source.h"
#include "dispatcher.h"
#include "metrics.h"
#include "route.h"

#define IN_HAND_RECORDS 100 /* a partition */
#define IN_HAND_BYTES   (2u << 20)
#define TRIMMED_MAX     (16u << 10)
#define TICK_MS         1000
#define ASK_MS          100 /* poll: the allowlist's feed does not wake this thread */

struct router {
    struct role_ctx *role;
    struct dispatcher *d;
    struct clients clients;
    struct worker *worker;
    struct allowlist_source *source;
    bool reading; /* there is an allowlist */
};

/* One event in hand. */
struct routing {
    struct router *r;
    struct work *work;
    struct task of;              /* the fields that all tasks of the event share */
    struct buf payload, trimmed; /* empty while the body goes out as it is */
};

/* ---- the end of an event ---- */

static void routing_free(struct routing *g)
{
    buf_clear(&g->payload);
    buf_clear(&g->trimmed);
    free(g);
}

static void stored(void *opaque)
{
    struct routing *g = opaque;
    FAULT_POINT("router.stored");
    work_done(g->work);
    routing_free(g);
}

static void count_event(const struct routing *g, const char *result)
{
    metrics_add(role_metrics(g->r->role), M_EVENTS,
                METRIC_LABELS(str_of(event_kind_name(g->of.event.kind)), str_of(result)), 1);
}

/* ---- what an event becomes ---- */

static void put_tasks(struct routing *g, const struct route *first, struct str repos, size_t n)
{
    const struct task task = route_task(first, &g->of);
    struct str payload = g->payload.len ? buf_str(&g->payload) : g->work->record->value;
    post_tasks(g->work, &task, repos, n, route_takes_payload(first->kind) ? payload : STR_LIT(""));
}

static bool gets_task(const struct route *to, const char *unfit)
{
    return !to->skipped && !(unfit && route_takes_payload(to->kind));
}

/* A re-run or an expand is the only route of its event: its record holds no other. */
static size_t put_tier(struct routing *g, const struct routes *routes, int level, const char *unfit)
{
    char repos[TASK_REPOS_SIZE];
    const struct route *first = NULL;
    size_t len = 0, n = 0, tasks = 0;
    for (size_t i = 0; i < routes->n; i++) {
        const struct route *to = &routes->at[i];
        if (to->level != level || !gets_task(to, unfit))
            continue;
        if (n == TASK_REPOS_MAX) {
            put_tasks(g, first, (struct str){ repos, len }, n);
            n = len = 0;
        }
        if (n++ == 0)
            first = to;
        else
            repos[len++] = ',';
        memcpy(repos + len, to->repo.ptr, to->repo.len);
        len += to->repo.len;
        tasks++;
    }
    if (n)
        put_tasks(g, first, (struct str){ repos, len }, n);
    return tasks;
}

static void put_all(struct routing *g, const struct routes *routes, const char *unfit)
{
    size_t tasks = 0;
    for (int level = 1; level <= 4; level++)
        tasks += put_tier(g, routes, level, unfit);
    /* A downstream that gets no task still gets an outcome that says why. */
    for (size_t i = 0; i < routes->n; i++) {
        const struct route *to = &routes->at[i];
        if (gets_task(to, unfit))
            continue;
        const struct task task = route_task(to, &g->of);
        struct outcome outcome;
        outcome_now(&outcome, &task, to->skipped ? OUTCOME_SKIPPED : OUTCOME_FAILED,
                    to->skipped ? to->skipped : unfit);
        post_outcome(g->work, &outcome);
    }
    const char *skipped = routes->nothing;
    if (!skipped && routes->n && !tasks)
        skipped = routes->at[0].skipped ? routes->at[0].skipped : unfit;
    const struct event *event = &g->of.event;
    count_event(g, tasks ? "routed" : unfit ? "refused" : "skipped");
    log_info(
        "routed", LOG_STR("delivery", event->delivery),
        LOG_STR("kind", str_of(event_kind_name(event->kind))), LOG_STR("action", event->action),
        LOG_INT("pr", event->pr), LOG_STR("source", event->source), LOG_STR("again", event->again),
        LOG_INT("tasks", (int64_t)tasks), LOG_INT("wait_ms", clock_wall_ms() - event->received_ms),
        LOG_STR("trimmed", g->trimmed.len ? buf_str(&g->trimmed) : STR_NONE),
        LOG_STR("skipped", str_of(skipped)));
}

static enum err read_event(struct routing *g, struct event_facts *facts, struct why *why)
{
    const struct record *record = g->work->record;
    struct task *of = &g->of;
    enum err err = event_from_headers(&of->event, &record->headers, why);
    if (!err && !record->key.len)
        err = why_set(why, ERR_REFUSE, "an event without a key has no lane");
    if (!err)
        err = event_scan(of->event.kind, record->value, facts, why);
    of->event_key = record->key;
    of->seq = (struct task_seq){ 0, record->at.partition, record->at.offset };
    if (!err && of->event.kind == EVENT_PULL_REQUEST && facts->updated_at[0])
        err = clock_parse(str_of(facts->updated_at), &of->seq.updated_ms, why);
    return err;
}

static void route_event(struct routing *g)
{
    struct router *r = g->r;
    struct why why;
    struct routes routes;
    struct event_facts facts;
    if (read_event(g, &facts, &why)) {
        work_dead(g->work, "poison", why.text);
        count_event(g, "poison");
        return;
    }
    if (g->of.event.kind == EVENT_PUSH)
        allowlist_source_pushed(r->source, &facts, g->work->record->value);
    const struct allowlist_version *version = allowlist_feed_get(r->d->feed);
    struct route_input in = { .event = &g->of.event,
                              .facts = &facts,
                              .list = version->list,
                              .now_ms = clock_wall_ms(),
                              .max_age_ms = r->d->max_age_ms,
                              .app_id = r->d->app_number };
    route(&in, &routes);
    /* Fit the payload once for all downstreams: GitHub refuses one that is too large or has NUL. */
    const struct str body = g->work->record->value;
    bool takes = false;
    for (size_t i = 0; i < routes.n; i++)
        takes |= !routes.at[i].skipped && route_takes_payload(routes.at[i].kind);
    bool unfit = takes && (body.len > PAYLOAD_MAX_BYTES || facts.has_nul) &&
                 payload_fit(body, PAYLOAD_MAX_BYTES, &g->payload, &g->trimmed, &why);
    if (g->trimmed.len)
        g->of.payload_trimmed = buf_str(&g->trimmed);
    if (unfit)
        work_dead(g->work, "refused", why.text);
    put_all(g, &routes, unfit ? why.text : NULL);
    routes_clear(&routes);
    allowlist_feed_release(r->d->feed, version);
}

/* ---- the role ---- */

static void router_take(void *opaque, struct work *work)
{
    struct routing *g = mem_alloc(1, sizeof(*g));
    g->r = opaque;
    g->work = work;
    work->user = g;
    buf_init(&g->payload, PAYLOAD_MAX_BYTES);
    buf_init(&g->trimmed, TRIMMED_MAX);
    route_event(g);
    work_then(work, stored, g);
}

/* Without an allowlist no event is read: the lag grows, nothing is lost. */
static int router_tick(void *opaque)
{
    struct router *r = opaque;
    struct why why;
    allowlist_source_turn(r->source);
    if (r->reading)
        return TICK_MS;
    const struct allowlist_version *version = allowlist_feed_get(r->d->feed);
    bool known = version->list;
    allowlist_feed_release(r->d->feed, version);
    worker_not_ready(r->worker, known ? NULL : allowlist_source_trouble(r->source));
    role_waiting(r->role, !known);
    if (known && worker_read(r->worker, &why))
        log_error("not_reading", LOG_STR("role", STR_LIT("router")),
                  LOG_STR("error", str_of(why.text)));
    else
        r->reading = known;
    return ASK_MS;
}

/* All that follows from an event is in flight to Kafka, and may be stored. */
static void router_drop(void *opaque, struct work *work)
{
    (void)opaque;
    (void)work;
}

static void router_forget(void *opaque, struct work *work)
{
    (void)opaque;
    routing_free(work->user);
}

static enum err router_init(struct router *r, struct why *why)
{
    static const enum topic reads[] = { TOPIC_EVENTS };
    static const enum topic writes[] = { TOPIC_DISPATCH_L1, TOPIC_DISPATCH_L2, TOPIC_DISPATCH_L3,
                                         TOPIC_DISPATCH_L4, TOPIC_DISPATCHES,  TOPIC_ALLOWLIST };
    static const struct worker_role does = {
        .take = router_take, .tick = router_tick, .drop = router_drop, .forget = router_forget
    };
    enum err err = dispatcher_clients(r->d, 0, 0, &r->clients, why);
    if (err)
        return err;
    const struct worker_options options = {
        .role = r->role,
        .kafka = &r->d->kafka,
        .topics = &r->d->topics,
        .group = GROUP_ROUTER,
        .reads = reads,
        .n_reads = sizeof(reads) / sizeof(reads[0]),
        .writes = writes,
        .n_writes = sizeof(writes) / sizeof(writes[0]),
        .max_in_hand = IN_HAND_RECORDS,
        .max_in_hand_bytes = IN_HAND_BYTES,
        .http = r->clients.http,
        .metrics = dispatcher_worker_metrics,
        .does = &does,
        .opaque = r,
    };
    err = worker_new(&r->worker, &options, why);
    if (!err)
        r->source = allowlist_source_new(r->role, r->d, &r->clients, r->worker);
    return err;
}

enum err router_run(struct role_ctx *role, void *opaque, struct why *why)
{
    struct router r = { .role = role, .d = opaque };
    enum err err = router_init(&r, why);
    if (!err)
        err = worker_run(r.worker, why);
    github_free(r.clients.github);
    http_client_free(r.clients.http);
    allowlist_source_free(r.source);
    worker_free(r.worker);
    redis_free(r.clients.redis);
    return err;
}

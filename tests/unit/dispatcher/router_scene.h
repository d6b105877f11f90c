/* A router whose worker, topics and GitHub are fakes, for router_test.c: what it writes is noted in
 * order, and is stored when a test says so. */
#ifndef CRCR_TESTS_ROUTER_SCENE_H
#define CRCR_TESTS_ROUTER_SCENE_H

#include "common/base/clock.h"
#include "common/github/payload_fit.h"
#include "dispatcher/allowlist_source.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/rerun.h"
#include "role_fake.h"

#define DELIVERY "9d619547-4191-4a7b-807b-179e341c9a29"
#define SHA      "0123456789abcdef0123456789abcdef01234567"
#define UPDATED  1795231200000LL
#define MAX_AGE  (3 * 86400000LL)
#define OUR_APP  4242
#define FITTED   "{\"fitted\":1}"

static const char four_tiers[] = "L1: [org/one]\n"
                                 "L2:\n"
                                 "  - org/two\n"
                                 "  - org/night: {events: [nightly]}\n"
                                 "L3:\n"
                                 "  device: { org/three: [alice] }\n"
                                 "L4:\n"
                                 "  - org/four: bob\n";

static struct {
    struct allowlist_version version;
    size_t n_held;          /* versions that are not released */
    struct task task;       /* the last that was put */
    struct str value;       /* its payload; lives until the event is stored */
    struct outcome outcome; /* likewise */
    char trimmed[256];      /* of the last task */
    char run_id[64];
    char not_ready[128];
    bool pushed;
    enum err fit;
    struct work work;
    struct record record;
    void (*then)(void *opaque);
    void *opaque; /* of then */
} world;

/* ---- what is written ---- */

void post_tasks(struct work *work, const struct task *task, struct str repos, size_t n,
                struct str value)
{
    size_t listed = 1;
    assert_ptr_equal(work, &world.work);
    for (size_t i = 0; i < repos.len; i++)
        listed += repos.ptr[i] == ',';
    assert_int_equal(n, listed);
    world.task = *task; /* without what its caller's stack holds */
    world.task.run_id = STR_NONE;
    (void)str_copy(world.run_id, sizeof(world.run_id), task->run_id);
    world.value = value;
    snprintf(world.trimmed, sizeof(world.trimmed), "%.*s", STR_ARG(task->payload_trimmed));
    say("L%d %s %.*s; ", task->level, task_kind_name(task->kind), STR_ARG(repos));
}

void outcome_now(struct outcome *ret, const struct task *task, enum outcome_kind kind,
                 const char *reason)
{
    outcome_init(ret, task);
    ret->outcome = kind;
    str_copy(ret->error, sizeof(ret->error), str_of(reason));
}

void post_outcome(struct work *work, const struct outcome *outcome)
{
    assert_ptr_equal(work, &world.work);
    world.outcome = *outcome;
    say("outcome %s %s; ", outcome_kind_name(outcome->outcome), outcome->repo);
}

void work_dead(struct work *work, const char *class, const char *error)
{
    (void)work;
    assert_true(*error);
    say("dead %s; ", class);
}

void work_then(struct work *work, void (*then)(void *opaque), void *opaque)
{
    (void)work;
    world.then = then;
    world.opaque = opaque;
}

enum err payload_fit(struct str body, size_t max_bytes, struct buf *to, struct buf *trimmed,
                     struct why *why)
{
    assert_ptr_equal(body.ptr, world.record.value.ptr);
    assert_int_equal(max_bytes, 59000);
    say("fit; ");
    if (world.fit)
        return why_set(why, world.fit, "it is too large");
    buf_puts(to, FITTED);
    buf_puts(trimmed, "[\"body\"]");
    return OK;
}

/* ---- the allowlist in force, and where it comes from ---- */

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    (void)f;
    world.n_held++;
    return &world.version;
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    (void)f;
    assert_ptr_equal(v, &world.version);
    world.n_held--;
}

struct allowlist_source *allowlist_source_new(struct role_ctx *role, struct dispatcher *d,
                                              const struct clients *clients, struct worker *worker)
{
    (void)role;
    (void)d;
    (void)clients;
    (void)worker;
    return NULL;
}

void allowlist_source_free(struct allowlist_source *s)
{
    (void)s;
}

void allowlist_source_turn(struct allowlist_source *s)
{
    (void)s;
}

void allowlist_source_pushed(struct allowlist_source *s, const struct event_facts *facts,
                             struct str body)
{
    (void)s;
    (void)facts;
    assert_ptr_equal(body.ptr, world.record.value.ptr);
    world.pushed = true;
}

const char *allowlist_source_trouble(struct allowlist_source *s)
{
    (void)s;
    return "GitHub answered 404";
}

/* ---- clients, worker, role ---- */

enum err dispatcher_clients(const struct dispatcher *d, int level, int max_calls,
                            struct clients *ret, struct why *why)
{
    (void)d;
    (void)level;
    (void)max_calls;
    (void)ret;
    (void)why;
    return OK;
}

void worker_not_ready(struct worker *w, const char *reason)
{
    (void)w;
    snprintf(world.not_ready, sizeof(world.not_ready), "%s", reason ? reason : "");
}

/* ---- what a scenario does ---- */

static void use_allowlist(const char *yaml)
{
    struct allowlist *list;
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), NULL), OK);
    allowlist_free((struct allowlist *)world.version.list);
    world.version.list = list;
}

/* The event is read: now, unless age_ms ago. It is not stored yet. */
static void read_event(struct event event, const char *body, int64_t age_ms)
{
    event.delivery = STR_LIT(DELIVERY);
    event.source = STR_LIT("webhook");
    event.head_sha = STR_LIT(SHA);
    event.received_ms = clock_wall_ms() - age_ms;
    fake.said[0] = 0;
    world.record = (struct record){ .at = { .topic = "crcr.events", .partition = 3, .offset = 21 },
                                    .key = STR_LIT("pytorch/pytorch#17"),
                                    .value = str_of(body) };
    headers_init(&world.record.headers);
    event_to_headers(&event, &world.record.headers);
    world.work = (struct work){ .record = &world.record };
    fake.options.does->take(fake.options.opaque, &world.work);
    assert_int_equal(world.n_held, 0);
}

static void stored(void)
{
    world.then(world.opaque);
}

#define PULL_REQUEST(extra)                                                                        \
    "{\"action\":\"opened\",\"repository\":{\"full_name\":\"pytorch/pytorch\"},"                   \
    "\"pull_request\":{\"number\":17,\"updated_at\":\"2026-11-21T03:20:00Z\","                     \
    "\"head\":{\"sha\":\"" SHA "\"}" extra "}}"

static const char pull_request[] = PULL_REQUEST("");
static const struct event opened = { .kind = EVENT_PULL_REQUEST,
                                     .action = { "opened", 6 },
                                     .pr = 17 };

static void press(const char *check, const char *external_id)
{
    static char body[1024];
    const struct event event = { .kind = EVENT_CHECK_RUN, .action = STR_LIT("rerequested") };
    snprintf(body, sizeof(body),
             "{\"action\":\"rerequested\",\"repository\":{\"full_name\":\"pytorch/pytorch\"},"
             "\"check_run\":{\"id\":5,\"name\":\"%s\",\"head_sha\":\"" SHA
             "\",\"external_id\":\"%s\",\"app\":{\"id\":%d}}}",
             check, external_id, OUR_APP);
    read_event(event, body, 0);
}

static double counted(const char *event, const char *result)
{
    return metrics_value(fake.metrics, M_EVENTS, METRIC_LABELS(str_of(event), str_of(result)));
}

/* A tier of n downstreams: org/r1 … */
static void use_tier_of(int n)
{
    char yaml[1024] = "L1:\n";
    for (int i = 1; i <= n; i++)
        snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml), "  - org/r%d\n", i);
    use_allowlist(yaml);
}

static size_t n_said(const char *what)
{
    size_t n = 0;
    for (const char *at = fake.said; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void run(void **state)
{
    struct dispatcher dispatcher = { .max_age_ms = MAX_AGE, .app_number = OUR_APP };
    struct why why;
    memset(&world, 0, sizeof(world));
    role_fake_init(SCENARIO(state));
    use_allowlist(four_tiers);
    assert_int_equal(router_run(NULL, &dispatcher, &why), OK);
    allowlist_free((struct allowlist *)world.version.list);
    metrics_free(fake.metrics);
}

#endif

/* The loop of a sender: how much it reads, for how long it sleeps, and how it ends. What happens to
 * a task is a fake, and so are the worker and GitHub: they note in order what they are asked for.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/gate.h"
#include "common/github/github.h"
#include "dispatcher/metrics.h"
#include "dispatcher/sender.h"

static struct {
    char said[512];   /* what was asked for, in order: "finish; start; " */
    char started[64]; /* before the loop */
    const struct worker_options *options;
    struct sender *s;
    void (*scenario)(void);
    struct metrics *metrics;
    size_t in_hand;
    bool waiting;
    int max_calls, level;
    enum err worker, run;
    struct gate_news news[3];
    size_t n_news;
} world;

static void say(const char *what)
{
    size_t len = strlen(world.said);
    snprintf(world.said + len, sizeof(world.said) - len, "%s; ", what);
}

/* ---- the tasks ---- */

void tasks_take(struct sender *s, struct work *work)
{
    (void)s;
    (void)work;
    say("take");
}

void task_drop(struct task_in_hand *t)
{
    assert_non_null(t);
    say("drop");
}

void task_forget(struct task_in_hand *t)
{
    (void)t;
    say("forget");
}

void tasks_start(struct sender *s)
{
    (void)s;
    say("start");
}

void tasks_finish(struct sender *s)
{
    (void)s;
    say("finish");
}

/* ---- clients, worker, role ---- */

enum err dispatcher_clients(const struct dispatcher *d, int level, int max_calls,
                            struct clients *ret, struct why *why)
{
    (void)d;
    (void)ret;
    (void)why;
    world.level = level;
    world.max_calls = max_calls;
    return OK;
}

void dispatcher_wait_allowlist(struct role_ctx *role, const struct dispatcher *d)
{
    (void)role;
    (void)d;
    say("allowlist");
}

enum err worker_new(struct worker **ret, const struct worker_options *options, struct why *why)
{
    static struct worker_options kept; /* the sender's own are gone when the loop runs */
    (void)ret;
    kept = *options;
    world.options = &kept;
    world.s = options->opaque;
    return world.worker ? why_set(why, world.worker, "a topic is missing") : OK;
}

enum err worker_read(struct worker *w, struct why *why)
{
    (void)w;
    (void)why;
    say("read");
    return OK;
}

enum err worker_run(struct worker *w, struct why *why)
{
    (void)w;
    str_copy(world.started, sizeof(world.started), str_of(world.said));
    world.said[0] = 0;
    world.scenario();
    return world.run ? why_set(why, world.run, "Kafka cannot go on") : OK;
}

void worker_free(struct worker *w)
{
    (void)w;
    say("worker_free");
}

size_t worker_in_hand(const struct worker *w)
{
    (void)w;
    return world.in_hand;
}

const char *role_name(const struct role_ctx *r)
{
    (void)r;
    return "l3";
}

struct metrics *role_metrics(const struct role_ctx *r)
{
    (void)r;
    return world.metrics;
}

void role_waiting(struct role_ctx *r, bool waiting)
{
    (void)r;
    world.waiting = waiting;
}

void github_free(struct github *g)
{
    (void)g;
    say("github_free");
}

void github_report(struct github *g, struct metrics *m, const struct budget_families *to,
                   struct str who)
{
    (void)g;
    (void)m;
    (void)to;
    (void)who;
}

void http_client_free(struct http_client *c)
{
    (void)c;
    say("http_free");
}

void redis_free(struct redis *r)
{
    (void)r;
    say("redis_free");
}

bool gate_news(struct gate *gate, struct gate_news *ret)
{
    (void)gate;
    if (!world.n_news)
        return false;
    *ret = world.news[--world.n_news];
    return true;
}

/* ---- what a scenario does ---- */

static int tick(void)
{
    return world.options->does->tick(world.s);
}

static bool full(size_t in_hand, size_t in_flight)
{
    world.in_hand = in_hand;
    world.s->in_flight = in_flight;
    return world.options->does->full(world.s);
}

/* One task in its lane, which waits for that long; ends with unhold. */
static struct lane_item item;
static void hold(int64_t wait_ms)
{
    memset(&item, 0, sizeof(item));
    lanes_put(world.s->lanes, STR_LIT("org/a"), STR_LIT("pytorch/pytorch#17"), &item);
    assert_ptr_equal(lanes_take(world.s->lanes, 0), &item);
    lanes_hold(world.s->lanes, &item, clock_mono_ms() + wait_ms);
    world.in_hand = 1;
}

static void unhold(void)
{
    lanes_remove(world.s->lanes, &item);
    world.s->in_flight = 0;
}

/* ---- the tests ---- */

static void nothing(void)
{
}

static void a_turn_finishes_before_it_starts_more(void)
{
    assert_int_equal(tick(), 1000); /* nothing is due */
    assert_string_equal(world.said, "finish; start; ");
}

static void it_reads_until_4096_tasks_are_in_hand(void)
{
    assert_false(full(0, 0));
    assert_false(full(4095, 63));
    assert_true(full(4096, 0));
}

static void while_all_64_calls_are_in_flight_128_tasks_are_enough(void)
{
    assert_false(full(127, 64));
    assert_true(full(128, 64));
    assert_false(full(128, 63));
}

static void it_sleeps_until_a_task_is_due_and_a_second_at_most(void)
{
    hold(300);
    assert_in_range(tick(), 1, 300);
    unhold();
    hold(5000);
    assert_int_equal(tick(), 1000);
    unhold();
    hold(0);
    assert_int_equal(tick(), 0);
    world.s->in_flight = 64; /* an answer wakes it */
    assert_int_equal(tick(), 1000);
    unhold();
}

static void what_is_decided_does_not_wait(void)
{
    struct task_in_hand t = { .s = world.s };
    world.s->finishing = &t;
    world.s->in_flight = 64;
    assert_int_equal(tick(), 0);
    world.s->finishing = NULL;
    world.s->in_flight = 0;
}

static void it_waits_on_purpose_only_while_no_call_is_in_flight_and_none_is_due(void)
{
    hold(5000);
    tick();
    assert_true(world.waiting);
    world.s->in_flight = 1;
    tick();
    assert_false(world.waiting);
    unhold();
    hold(0);
    tick();
    assert_false(world.waiting);
    unhold();
    world.in_hand = 0;
    tick();
    assert_false(world.waiting);
}

static void a_record_that_became_no_task_is_not_given_back(void)
{
    struct work work = { .user = NULL };
    struct task_in_hand t = { .s = world.s };
    world.options->does->drop(world.s, &work);
    assert_string_equal(world.said, "");
    work.user = &t;
    world.options->does->drop(world.s, &work);
    assert_string_equal(world.said, "drop; ");
}

static double breaker_open(void)
{
    return metrics_value(world.metrics, M_BREAKER_OPEN, METRIC_LABELS(STR_LIT("org")));
}

static void a_breaker_is_shown_open_until_it_closes(void)
{
    world.news[0] = (struct gate_news){ .account = "org", .error = "no answer", .open = true };
    world.n_news = 1;
    tick();
    assert_true(breaker_open() == 1);
    world.news[0].open = false;
    world.n_news = 1;
    tick();
    assert_true(breaker_open() == 0);
}

static void it_reads_its_own_tier_within_its_limits(void)
{
    assert_int_equal(world.s->level, 3);
    assert_int_equal(world.level, 3);
    assert_int_equal(world.options->group, GROUP_L3);
    assert_int_equal(world.options->n_reads, 1);
    assert_int_equal(world.options->max_in_hand, 200);
    assert_int_equal(world.options->max_in_hand_bytes, 1u << 20);
    assert_int_equal(world.max_calls, 64);
}

static void nothing_is_read_before_the_allowlist(void)
{
    assert_string_equal(world.started, "allowlist; read; ");
}

/* ---- start and shutdown ---- */

static enum err run_with(void (*scenario)(void))
{
    struct dispatcher dispatcher = { .config = NULL };
    struct why why;
    world.metrics = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
    world.scenario = scenario;
    enum err err = sender_run(NULL, &dispatcher, &why);
    metrics_free(world.metrics);
    return err;
}

static void reset(void)
{
    memset(&world, 0, sizeof(world));
}

/* The calls end as unknown with their client; their outcomes are still published. */
static void calls_in_flight_at_the_end_are_finished_before_the_worker_goes(void **state)
{
    (void)state;
    reset();
    assert_int_equal(run_with(nothing), OK);
    assert_string_equal(world.said, "github_free; http_free; finish; worker_free; redis_free; ");
    reset();
    world.run = ERR_STOP; /* likewise */
    assert_int_equal(run_with(nothing), ERR_STOP);
    assert_string_equal(world.said, "github_free; http_free; finish; worker_free; redis_free; ");
}

static void without_its_topics_nothing_is_read(void **state)
{
    (void)state;
    reset();
    world.worker = ERR_STOP;
    assert_int_equal(run_with(nothing), ERR_STOP);
    assert_string_equal(world.said, "github_free; http_free; finish; worker_free; redis_free; ");
}

static void run(void **state)
{
    reset();
    assert_int_equal(run_with((void (*)(void))(uintptr_t)*state), OK);
}

int main(void)
{
#define TEST(f)                                                                                    \
    {                                                                                              \
        .name = #f, .test_func = run, .initial_state = (void *)(uintptr_t)f                        \
    }
    const struct CMUnitTest tests[] = {
        TEST(a_turn_finishes_before_it_starts_more),
        TEST(it_reads_until_4096_tasks_are_in_hand),
        TEST(while_all_64_calls_are_in_flight_128_tasks_are_enough),
        TEST(it_sleeps_until_a_task_is_due_and_a_second_at_most),
        TEST(what_is_decided_does_not_wait),
        TEST(it_waits_on_purpose_only_while_no_call_is_in_flight_and_none_is_due),
        TEST(a_record_that_became_no_task_is_not_given_back),
        TEST(a_breaker_is_shown_open_until_it_closes),
        TEST(it_reads_its_own_tier_within_its_limits),
        TEST(nothing_is_read_before_the_allowlist),
        cmocka_unit_test(calls_in_flight_at_the_end_are_finished_before_the_worker_goes),
        cmocka_unit_test(without_its_topics_nothing_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

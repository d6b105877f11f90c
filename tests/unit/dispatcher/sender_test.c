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
#include "dispatcher/sender.h"
#include "role_fake.h"

static struct {
    size_t in_hand, in_hand_bytes;
    int max_calls, level;
    struct gate_news news[3];
    size_t n_news;
    bool crowded; /* no further call of any account may go */
} world;

/* ---- the tasks ---- */

void tasks_take(struct sender *s, struct work *work)
{
    (void)s;
    (void)work;
    say("take; ");
}

void task_drop(struct task_in_hand *t)
{
    assert_non_null(t);
    say("drop; ");
}

void task_forget(struct task_in_hand *t)
{
    (void)t;
    say("forget; ");
}

void tasks_start(struct sender *s)
{
    (void)s;
    say("start; ");
}

void tasks_finish(struct sender *s)
{
    (void)s;
    say("finish; ");
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
    say("allowlist; ");
}

size_t worker_in_hand(const struct worker *w)
{
    (void)w;
    return world.in_hand;
}

size_t worker_in_hand_bytes(const struct worker *w)
{
    (void)w;
    return world.in_hand_bytes;
}

const char *role_name(const struct role_ctx *r)
{
    (void)r;
    return "l3";
}

void github_free(struct github *g)
{
    (void)g;
    say("github_free; ");
}

bool github_reserve(struct github *g, struct str repo)
{
    (void)g;
    assert_true(str_is(repo, "org/a"));
    return !world.crowded;
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
    say("http_free; ");
}

void redis_free(struct redis *r)
{
    (void)r;
    say("redis_free; ");
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

static struct sender *the_sender(void)
{
    return fake.options.opaque;
}

static int tick(void)
{
    return fake.options.does->tick(the_sender());
}

static bool full(size_t in_hand, size_t in_flight)
{
    world.in_hand = in_hand;
    the_sender()->in_flight = in_flight;
    return fake.options.does->full(the_sender());
}

/* One task in its lane, which waits for that long; ends with unhold. */
static struct lane_item item;
static void hold(int64_t wait_ms)
{
    memset(&item, 0, sizeof(item));
    lanes_put(the_sender()->lanes, STR_LIT("org/a"), STR_LIT("pytorch/pytorch#17"), &item);
    assert_ptr_equal(lanes_take(the_sender()->lanes, 0), &item);
    lanes_hold(the_sender()->lanes, &item, clock_mono_ms() + wait_ms);
    world.in_hand = 1;
}

static void unhold(void)
{
    lanes_remove(the_sender()->lanes, &item);
    the_sender()->in_flight = 0;
}

/* ---- the tests ---- */

static void nothing(void)
{
}

static void a_turn_finishes_before_it_starts_more(void)
{
    assert_int_equal(tick(), 1000); /* nothing is due */
    assert_string_equal(fake.said, "finish; start; ");
}

static void it_reads_until_4096_tasks_are_in_hand(void)
{
    assert_false(full(0, 0));
    assert_false(full(4095, 63));
    assert_true(full(4096, 0));
}

static void or_2_mib_in_all_partitions(void)
{
    world.in_hand_bytes = (2u << 20) - 1;
    assert_false(full(80, 8));
    world.in_hand_bytes = 2u << 20;
    assert_true(full(80, 8));
    world.in_hand_bytes = 0;
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
    the_sender()->in_flight = 64; /* an answer wakes it */
    assert_int_equal(tick(), 100);
    unhold();
}

static void what_may_not_go_yet_stays_in_its_lane_and_is_asked_for_again(void)
{
    struct lanes *lanes = the_sender()->lanes;
    memset(&item, 0, sizeof(item));
    lanes_put(lanes, STR_LIT("org/a"), STR_LIT("pytorch/pytorch#17"), &item);
    world.in_hand = 1;
    world.crowded = true;
    assert_null(lanes_take(lanes, 0));
    assert_int_equal(tick(), 100); /* a call of another tier may have ended */
    assert_true(fake.waiting);
    world.crowded = false;
    assert_ptr_equal(lanes_take(lanes, 0), &item);
    lanes_end(lanes, &item);
    world.in_hand = 0;
}

static void what_is_decided_does_not_wait(void)
{
    struct task_in_hand t = { .s = the_sender() };
    the_sender()->finishing = &t;
    the_sender()->in_flight = 64;
    assert_int_equal(tick(), 0);
    the_sender()->finishing = NULL;
    the_sender()->in_flight = 0;
}

static void it_waits_on_purpose_only_while_no_call_is_in_flight_and_none_is_due(void)
{
    hold(5000);
    tick();
    assert_true(fake.waiting);
    the_sender()->in_flight = 1;
    tick();
    assert_false(fake.waiting);
    unhold();
    hold(0);
    tick();
    assert_false(fake.waiting);
    unhold();
    world.in_hand = 0;
    tick();
    assert_false(fake.waiting);
}

static void a_record_that_became_no_task_is_not_given_back(void)
{
    struct work work = { .user = NULL };
    struct task_in_hand t = { .s = the_sender() };
    fake.options.does->drop(the_sender(), &work);
    assert_string_equal(fake.said, "");
    work.user = &t;
    fake.options.does->drop(the_sender(), &work);
    assert_string_equal(fake.said, "drop; ");
}

static double breaker_open(void)
{
    return metrics_value(fake.metrics, M_BREAKER_OPEN, METRIC_LABELS(STR_LIT("org")));
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
    assert_int_equal(the_sender()->level, 3);
    assert_int_equal(world.level, 3);
    assert_int_equal(fake.options.group, GROUP_L3);
    assert_int_equal(fake.options.n_reads, 1);
    assert_int_equal(fake.options.max_in_hand, 200);
    assert_int_equal(world.max_calls, 64);
}

static void nothing_is_read_before_the_allowlist(void)
{
    assert_string_equal(fake.started, "allowlist; read; ");
}

/* ---- start and shutdown ---- */

static enum err run_with(void (*scenario)(void))
{
    struct dispatcher dispatcher = { .config = NULL };
    struct why why;
    fake.metrics = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
    fake.scenario = scenario;
    enum err err = sender_run(NULL, &dispatcher, &why);
    metrics_free(fake.metrics);
    return err;
}

static void reset(void)
{
    memset(&world, 0, sizeof(world));
    memset(&fake, 0, sizeof(fake));
}

/* The calls end as unknown with their client; their outcomes are still published. */
static void calls_in_flight_at_the_end_are_finished_before_the_worker_goes(void **state)
{
    (void)state;
    reset();
    assert_int_equal(run_with(nothing), OK);
    assert_string_equal(fake.said, "github_free; http_free; finish; worker_free; redis_free; ");
    reset();
    fake.run_err = ERR_STOP; /* likewise */
    assert_int_equal(run_with(nothing), ERR_STOP);
    assert_string_equal(fake.said, "github_free; http_free; finish; worker_free; redis_free; ");
}

static void without_its_topics_nothing_is_read(void **state)
{
    (void)state;
    reset();
    fake.new_err = ERR_STOP;
    assert_int_equal(run_with(nothing), ERR_STOP);
    assert_string_equal(fake.said, "github_free; http_free; finish; worker_free; redis_free; ");
}

static void run(void **state)
{
    reset();
    assert_int_equal(run_with((void (*)(void))(uintptr_t)*state), OK);
}

int main(void)
{
#define TEST(f) LOOP_TEST(f)
    const struct CMUnitTest tests[] = {
        TEST(a_turn_finishes_before_it_starts_more),
        TEST(it_reads_until_4096_tasks_are_in_hand),
        TEST(or_2_mib_in_all_partitions),
        TEST(while_all_64_calls_are_in_flight_128_tasks_are_enough),
        TEST(it_sleeps_until_a_task_is_due_and_a_second_at_most),
        TEST(what_may_not_go_yet_stays_in_its_lane_and_is_asked_for_again),
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

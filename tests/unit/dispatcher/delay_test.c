/* When a parked record comes back, in which order, and to where. The clocks and the worker are
 * fakes: time passes when a test says so, and what is put is stored when a test says so. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "dispatcher/dispatcher.h"
#include "role_fake.h"

#define HOUR_MS 3600000LL
#define N_WORKS 4

static struct {
    int64_t wall_ms, mono_ms;
    struct topics *topics;
    struct headers put; /* the last one's */
    post_failed_fn *failed;
    struct {
        struct work work;
        struct record record;
        void (*then)(void *opaque);
        void *opaque; /* of then and failed */
        char not_before[32];
    } works[N_WORKS];
    size_t n_works;
} world;

int64_t clock_wall_ms(void)
{
    return world.wall_ms;
}

int64_t clock_mono_ms(void)
{
    return world.mono_ms;
}

/* The rest of clock.c, which is linked as a whole; nothing here asks it. */
int64_t clock_boot_ms(void)
{
    return world.mono_ms;
}

int64_t clock_mono_us(void)
{
    return 1000 * world.mono_ms;
}

void clock_format(int64_t wall_ms, char to[CLOCK_TEXT_SIZE])
{
    snprintf(to, CLOCK_TEXT_SIZE, "%lld", (long long)wall_ms);
}

enum err clock_parse(struct str text, int64_t *wall_ms, struct why *why)
{
    (void)text;
    (void)wall_ms;
    (void)why;
    fail();
    return ERR_REFUSE;
}

/* ---- the worker ---- */

static size_t index_of(const struct work *work)
{
    size_t i = 0;
    while (&world.works[i].work != work)
        assert_true(++i < N_WORKS);
    return i;
}

void work_put(struct work *work, const struct post *post)
{
    say("put %s; ", topic_base_name(post->topic));
    assert_true(str_eq(post->key, work->record->key));
    assert_ptr_equal(post->value.ptr, work->record->value.ptr);
    headers_copy(&world.put, post->headers);
    world.failed = post->failed;
    world.works[index_of(work)].opaque = post->opaque;
}

void work_then(struct work *work, void (*then)(void *opaque), void *opaque)
{
    world.works[index_of(work)].then = then;
    world.works[index_of(work)].opaque = opaque;
}

void work_dead(struct work *work, const char *class, const char *error)
{
    (void)work;
    assert_true(*error);
    say("dead %s; ", class);
}

/* ---- what a scenario does ---- */

/* A record of that delay topic is read; wait_ms from now by the clock of who parked it. */
static struct work *park(enum topic in, enum topic to, int64_t wait_ms)
{
    size_t n = world.n_works++;
    struct record *record = &world.works[n].record;
    assert_true(n < N_WORKS);
    snprintf(world.works[n].not_before, sizeof(world.works[n].not_before), "%lld",
             (long long)(world.wall_ms + wait_ms));
    *record = (struct record){ .at = { .topic = world.topics->name[in] },
                               .key = STR_LIT("pytorch/pytorch#17"),
                               .value = STR_LIT("{}") };
    headers_init(&record->headers);
    headers_put(&record->headers, "to_topic", str_of(world.topics->name[to]));
    headers_put(&record->headers, "not_before_ms", str_of(world.works[n].not_before));
    headers_put(&record->headers, "error", STR_LIT("it must wait"));
    headers_put(&record->headers, "attempt", STR_LIT("3"));
    world.works[n].work = (struct work){ .record = record };
    fake.options.does->take(fake.options.opaque, &world.works[n].work);
    return &world.works[n].work;
}

/* A turn of the loop after ms; returns until when the role would sleep. */
static int tick_after(int64_t ms)
{
    world.mono_ms += ms;
    world.wall_ms += ms;
    return fake.options.does->tick(fake.options.opaque);
}

static void stored(struct work *work)
{
    size_t n = index_of(work);
    world.works[n].then(world.works[n].opaque);
}

static void drop(struct work *work)
{
    fake.options.does->drop(fake.options.opaque, work);
}

/* ---- the tests ---- */

static void it_comes_back_at_its_moment_and_not_before(void)
{
    struct work *work = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 5000);
    assert_int_equal(tick_after(0), 1000);
    assert_int_equal(tick_after(4999), 1);
    assert_true(fake.waiting);
    assert_string_equal(fake.said, "");
    tick_after(1);
    assert_false(fake.waiting);
    assert_string_equal(fake.said, "put dispatch.l2; ");
    stored(work);
    assert_string_equal(fake.said, "put dispatch.l2; done; ");
    assert_true(metrics_value(fake.metrics, M_RELEASED, METRIC_LABELS(STR_LIT("delay.10s"))) == 1);
}

static void it_comes_back_as_it_was_without_what_parked_it(void)
{
    struct work *work = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 0);
    tick_after(0);
    assert_true(str_is(headers_get(&world.put, "attempt"), "3"));
    assert_null(headers_get(&world.put, "to_topic").ptr);
    assert_null(headers_get(&world.put, "not_before_ms").ptr);
    assert_null(headers_get(&world.put, "error").ptr);
    stored(work);
}

static void the_shortest_wait_ends_first_whatever_came_first(void)
{
    struct work *last = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L1, 9000);
    struct work *first = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 3000);
    struct work *second = park(TOPIC_DELAY_1M, TOPIC_CALLBACKS, 6000);
    struct work *late = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L3, -1000);
    tick_after(3000);
    assert_string_equal(fake.said, "put dispatch.l3; put dispatch.l2; ");
    tick_after(6000);
    assert_string_equal(fake.said,
                        "put dispatch.l3; put dispatch.l2; put callbacks; put dispatch.l1; ");
    stored(late);
    stored(first);
    stored(second);
    stored(last);
}

static void a_clock_that_is_set_changes_no_wait(void)
{
    struct work *work = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 5000);
    world.wall_ms += 2 * HOUR_MS;
    tick_after(4999);
    assert_string_equal(fake.said, "");
    world.wall_ms -= 4 * HOUR_MS;
    tick_after(1);
    assert_string_equal(fake.said, "put dispatch.l2; ");
    stored(work);
}

static void of_a_clock_that_ran_ahead_the_topics_longest_wait_is_left(void)
{
    struct work *ahead = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, HOUR_MS);
    struct work *skewed = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L3, 15000); /* 5 s are tolerated */
    struct work *day = park(TOPIC_DELAY_1H, TOPIC_DISPATCH_L4, 25 * HOUR_MS);
    tick_after(9999);
    assert_string_equal(fake.said, "");
    tick_after(1);
    assert_string_equal(fake.said, "put dispatch.l2; ");
    tick_after(4999);
    assert_string_equal(fake.said, "put dispatch.l2; ");
    tick_after(1);
    assert_string_equal(fake.said, "put dispatch.l2; put dispatch.l3; ");
    tick_after(25 * HOUR_MS - 15001);
    assert_string_equal(fake.said, "put dispatch.l2; put dispatch.l3; ");
    tick_after(1);
    assert_string_equal(fake.said, "put dispatch.l2; put dispatch.l3; put dispatch.l4; ");
    stored(ahead);
    stored(skewed);
    stored(day);
}

static void what_may_not_go_there_or_waits_too_long_is_poison(void)
{
    park(TOPIC_DELAY_1H, TOPIC_DISPATCH_L4, 25 * HOUR_MS + 1);
    park(TOPIC_DELAY_10S, TOPIC_EVENTS, 1);
    park(TOPIC_RDELAY_1M, TOPIC_DISPATCH_L1, 1);
    tick_after(0);
    assert_string_equal(fake.said, "dead poison; done; dead poison; done; dead poison; done; ");
    struct work *work = park(TOPIC_RDELAY_1M, TOPIC_RECONCILE, 0);
    tick_after(0);
    assert_non_null(strstr(fake.said, "put reconcile; "));
    stored(work);
}

static void a_time_that_is_none_is_poison(void)
{
    struct record *record = &world.works[0].record;
    struct work *work = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 0);
    tick_after(0);
    stored(work);
    headers_set(&record->headers, "not_before_ms", STR_LIT("soon"));
    fake.options.does->take(fake.options.opaque, work);
    assert_string_equal(fake.said, "put dispatch.l2; done; dead poison; done; ");
}

static void a_partition_that_goes_takes_along_what_waits_alone(void)
{
    struct work *leaves = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L1, 0);
    struct work *waits = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L2, 5000);
    tick_after(0);
    drop(leaves);
    assert_string_equal(fake.said, "put dispatch.l1; ");
    drop(waits);
    assert_string_equal(fake.said, "put dispatch.l1; drop; ");
    tick_after(5000);
    stored(leaves);
    assert_string_equal(fake.said, "put dispatch.l1; drop; done; ");
}

static void what_its_topic_refuses_goes_to_the_dlq(void)
{
    struct work *work = park(TOPIC_DELAY_10S, TOPIC_DISPATCH_L1, 0);
    tick_after(0);
    assert_false(world.failed(world.works[0].opaque, ERR_RETRY, "timed out"));
    assert_string_equal(fake.said, "put dispatch.l1; ");
    assert_true(world.failed(world.works[0].opaque, ERR_REFUSE, "too large"));
    stored(work);
    assert_string_equal(fake.said, "put dispatch.l1; dead refused; done; ");
}

static void a_partition_holds_256_records_and_4_mib(void)
{
    assert_int_equal(fake.options.group, GROUP_DELAY);
    assert_int_equal(fake.options.max_in_hand, 256);
    assert_int_equal(fake.options.max_in_hand_bytes, 4u << 20);
}

static void run(void **state)
{
    struct dispatcher dispatcher = { .config = NULL };
    struct why why;
    memset(&world, 0, sizeof(world));
    world.wall_ms = 1795231200007;
    world.mono_ms = 77;
    world.topics = &dispatcher.topics;
    role_fake_init(SCENARIO(state));
    assert_int_equal(topics_init(&dispatcher.topics, "crcr.", &why), OK);
    assert_int_equal(delay_run(NULL, &dispatcher, &why), OK);
    metrics_free(fake.metrics);
}

int main(void)
{
#define TEST(f) LOOP_TEST(f)
    const struct CMUnitTest tests[] = {
        TEST(it_comes_back_at_its_moment_and_not_before),
        TEST(it_comes_back_as_it_was_without_what_parked_it),
        TEST(the_shortest_wait_ends_first_whatever_came_first),
        TEST(a_clock_that_is_set_changes_no_wait),
        TEST(of_a_clock_that_ran_ahead_the_topics_longest_wait_is_left),
        TEST(what_may_not_go_there_or_waits_too_long_is_poison),
        TEST(a_time_that_is_none_is_poison),
        TEST(a_partition_that_goes_takes_along_what_waits_alone),
        TEST(what_its_topic_refuses_goes_to_the_dlq),
        TEST(a_partition_holds_256_records_and_4_mib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

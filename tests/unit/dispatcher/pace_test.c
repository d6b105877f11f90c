#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/pace.h"

#define A    STR_LIT("org/a")
#define B    STR_LIT("org/b")
#define NOW  1000000LL
#define WAIT 30000

static int setup(void **state)
{
    *state = pace_new();
    return 0;
}

static int teardown(void **state)
{
    pace_free(*state);
    return 0;
}

static void those_that_wait_come_back_one_by_one(void **state)
{
    int64_t last_ms;
    for (int i = 0; i < 1000; i++)
        assert_true((last_ms = pace_next(*state, A, NOW + WAIT, NOW)) == NOW + WAIT + i * PACE_MS);
    /* The next round is behind this one. */
    assert_true(pace_next(*state, A, NOW + 2 * WAIT, NOW + WAIT) == last_ms + PACE_MS);
    assert_true(pace_next(*state, B, NOW, NOW) == NOW); /* each downstream has its own */
}

static void what_waits_for_a_downstream_costs_the_same_however_much_it_is(void **state)
{
    enum { SECONDS = 600, ARRIVE = 100 }; /* 60,000 tasks of ten minutes */
    static int due[SECONDS + 3600 + 1];   /* how many come back in that second */
    for (int second = 0; second < SECONDS; second++) {
        const int64_t now_ms = NOW + second * 1000;
        assert_in_range(due[second], 0, 1000 / PACE_MS);
        for (int i = 0; i < due[second] + ARRIVE; i++)
            due[(pace_next(*state, A, now_ms + WAIT, now_ms) - NOW) / 1000]++;
    }
}

static void none_waits_longer_than_an_hour(void **state)
{
    int64_t last_ms = 0;
    for (int i = 0; i < 100000; i++)
        last_ms = pace_next(*state, A, NOW, NOW);
    assert_true(last_ms == NOW + PACE_MOST_MS);
}

static void a_downstream_for_which_nothing_waits_any_more_begins_anew(void **state)
{
    int64_t last_ms = 0;
    for (int i = 0; i < 100; i++)
        last_ms = pace_next(*state, A, NOW, NOW);
    pace_next(*state, B, last_ms, last_ms); /* forgets the first */
    assert_true(pace_next(*state, A, last_ms + 1, last_ms) == last_ms + 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(those_that_wait_come_back_one_by_one),
        TEST(what_waits_for_a_downstream_costs_the_same_however_much_it_is),
        TEST(none_waits_longer_than_an_hour),
        TEST(a_downstream_for_which_nothing_waits_any_more_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

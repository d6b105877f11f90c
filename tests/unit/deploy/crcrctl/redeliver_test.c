#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/redeliver.h"

#define HOUR (3600 * 1000LL)
#define DAY  (24 * HOUR)

static void what_fails_each_time_is_asked_for_ever_more_rarely(void **state)
{
    static const int64_t expected[] = { 30000, 60000, 120000, 240000, 300000, 300000 };
    int64_t pause_ms = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        pause_ms = redeliver_pause(pause_ms, 300000);
        assert_int_equal(pause_ms, expected[i]);
    }
}

static void a_round_is_never_later_than_the_loop_asks_for(void **state)
{
    (void)state;
    assert_int_equal(redeliver_pause(0, 1000), 1000);
    assert_int_equal(redeliver_pause(1000, 1000), 1000);
}

static void a_round_looks_back_a_little_before_the_last_one_that_left_nothing(void **state)
{
    (void)state;
    assert_int_equal(redeliver_since(100 * DAY, 3 * DAY, 100 * DAY - HOUR, 100 * DAY - 2 * HOUR),
                     100 * DAY - HOUR - HOUR / 4);
    assert_int_equal(redeliver_since(100 * DAY, HOUR, 100 * DAY - HOUR, 100 * DAY - 2 * HOUR),
                     100 * DAY - HOUR);
}

static void all_is_looked_through_at_first_and_once_a_day(void **state)
{
    (void)state;
    assert_int_equal(redeliver_since(100 * DAY, 3 * DAY, 0, 0), 97 * DAY);
    assert_int_equal(redeliver_since(100 * DAY, 3 * DAY, 100 * DAY - HOUR, 99 * DAY + 1),
                     100 * DAY - HOUR - HOUR / 4);
    assert_int_equal(redeliver_since(100 * DAY, 3 * DAY, 100 * DAY - HOUR, 99 * DAY), 97 * DAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_each_time_is_asked_for_ever_more_rarely),
        cmocka_unit_test(a_round_is_never_later_than_the_loop_asks_for),
        cmocka_unit_test(a_round_looks_back_a_little_before_the_last_one_that_left_nothing),
        cmocka_unit_test(all_is_looked_through_at_first_and_once_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/redeliver.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_each_time_is_asked_for_ever_more_rarely),
        cmocka_unit_test(a_round_is_never_later_than_the_loop_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

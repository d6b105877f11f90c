#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/limiter.h"

#define T0 1763700000 /* a multiple of the slot */

static void no_more_than_so_many_requests_in_60_s(void **state)
{
    (void)state;
    struct limiter *l = limiter_new(3, 1000);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0), 0);
    assert_int_equal(limiter_take(l, STR_LIT("O/R"), 1, T0 + 30), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 59), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 60), 5);
    assert_int_equal(limiter_take(l, STR_LIT("o/other"), 1, T0 + 60), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 65), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 65), 30);
    limiter_free(l);
}

static void no_more_than_so_many_bytes_in_60_s(void **state)
{
    (void)state;
    struct limiter *l = limiter_new(100, 1000);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 600, T0), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 401, T0 + 10), 55);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 400, T0 + 10), 0);
    limiter_free(l);
}

static void refused_requests_are_not_counted(void **state)
{
    (void)state;
    struct limiter *l = limiter_new(1, 1000);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0), 0);
    for (int i = 1; i < 65; i++)
        assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + i), 65 - i);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 65), 0);
    limiter_free(l);
}

static void what_it_told_to_wait_is_enough(void **state)
{
    (void)state;
    struct limiter *l = limiter_new(5, 1000);
    int64_t now = T0;
    for (int i = 0; i < 200; i++) {
        int wait_s = limiter_take(l, STR_LIT("o/r"), 10, now);
        now += wait_s > 0 ? wait_s : i % 7;
        if (wait_s > 0)
            assert_int_equal(limiter_take(l, STR_LIT("o/r"), 10, now), 0);
    }
    limiter_free(l);
}

static void a_long_pause_forgets_all(void **state)
{
    (void)state;
    struct limiter *l = limiter_new(1, 1000);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0), 0);
    assert_int_equal(limiter_take(l, STR_LIT("o/r"), 1, T0 + 100000), 0);
    limiter_free(l);
    limiter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_so_many_requests_in_60_s),
        cmocka_unit_test(no_more_than_so_many_bytes_in_60_s),
        cmocka_unit_test(refused_requests_are_not_counted),
        cmocka_unit_test(what_it_told_to_wait_is_enough),
        cmocka_unit_test(a_long_pause_forgets_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

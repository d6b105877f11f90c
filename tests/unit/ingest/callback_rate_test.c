#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/callback_rate.h"

#define T0 INT64_C(1763700000000000)
#define S  INT64_C(1000000)

#define DAY_S   INT64_C(86400)
#define DAY_MAX (INT64_C(1) << 40)

static int wait_s_of(struct callback_rate *rate, struct str repo, int64_t bytes, int64_t now_us)
{
    struct rate_wait wait = callback_rate_take_alone(rate, repo, bytes, now_us);
    assert_false(wait.day);
    return wait.seconds;
}

/* Takes requests of one byte until one has to wait; how many passed. */
static int take_all(struct callback_rate *rate, int64_t now_us, int *wait_s)
{
    int n = 0;
    while ((*wait_s = wait_s_of(rate, STR_LIT("o/r"), 1, now_us)) == 0)
        n++;
    return n;
}

static void ten_minutes_worth_may_come_at_once(void **state)
{
    (void)state;
    int wait_s;
    struct callback_rate *rate = callback_rate_new(6, 1 << 20, DAY_MAX);
    assert_int_equal(take_all(rate, T0, &wait_s), 60);
    assert_int_equal(wait_s, 10);
    assert_int_equal(wait_s_of(rate, STR_LIT("O/R"), 1, T0), 10);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/other"), 1, T0), 0);
    callback_rate_free(rate);
}

static void it_is_refilled_by_the_rate_and_holds_no_more_than_ten_minutes(void **state)
{
    (void)state;
    int wait_s;
    struct callback_rate *rate = callback_rate_new(6, 1 << 20, DAY_MAX);
    assert_int_equal(take_all(rate, T0, &wait_s), 60);
    assert_int_equal(take_all(rate, T0 + 60 * S, &wait_s), 6);
    assert_int_equal(take_all(rate, T0 + 65 * S, &wait_s), 0);
    assert_int_equal(wait_s, 5);
    assert_int_equal(take_all(rate, T0 + 100000 * S, &wait_s), 60);
    callback_rate_free(rate);
}

static void bytes_have_a_bucket_of_their_own(void **state)
{
    (void)state;
    struct callback_rate *rate = callback_rate_new(100, 60, DAY_MAX);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 601, T0), 1);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 600, T0), 0);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 7, T0), 7);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 0, T0), 0);
    callback_rate_free(rate);
}

static void refused_requests_take_nothing(void **state)
{
    (void)state;
    int wait_s;
    struct callback_rate *rate = callback_rate_new(1, 1 << 20, DAY_MAX);
    assert_int_equal(take_all(rate, T0, &wait_s), 10);
    for (int i = 0; i < 60; i++)
        assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 1, T0 + i * S), 60 - i);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 1, T0 + 60 * S), 0);
    callback_rate_free(rate);
}

static void the_wait_is_enough_at_any_rate(void **state)
{
    (void)state;
    for (int per_min = 1; per_min <= 1000; per_min += 37) {
        int wait_s;
        struct callback_rate *rate = callback_rate_new(per_min, 1 << 20, DAY_MAX);
        assert_in_range(take_all(rate, T0 + 1, &wait_s), per_min * 10, per_min * 10 + 1);
        assert_int_equal(wait_s_of(rate, STR_LIT("o/r"), 1, T0 + 1 + wait_s * S), 0);
        callback_rate_free(rate);
    }
    callback_rate_free(NULL);
}

static void a_day_has_a_quota_of_bytes(void **state)
{
    (void)state;
    struct callback_rate *rate = callback_rate_new(1000, 1 << 20, 1000);
    const int64_t day = 20000 * DAY_S * S;
    const struct str repo = STR_LIT("o/r");
    assert_int_equal(wait_s_of(rate, repo, 1000, day + 100 * S), 0);
    struct rate_wait wait = callback_rate_take_alone(rate, repo, 1, day + 200 * S);
    assert_true(wait.day);
    assert_int_equal(wait.seconds, DAY_S - 200);
    assert_int_equal(wait_s_of(rate, STR_LIT("o/other"), 1000, day + 200 * S), 0);
    wait = callback_rate_take_alone(rate, repo, 1, day + DAY_S * S - 1);
    assert_true(wait.day);
    assert_int_equal(wait.seconds, 1);
    assert_int_equal(wait_s_of(rate, repo, 999, day + DAY_S * S), 0);
    assert_int_equal(wait_s_of(rate, repo, 1, day + DAY_S * S), 0);
    assert_true(callback_rate_take_alone(rate, repo, 1, day + DAY_S * S).day);
    callback_rate_free(rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_minutes_worth_may_come_at_once),
        cmocka_unit_test(it_is_refilled_by_the_rate_and_holds_no_more_than_ten_minutes),
        cmocka_unit_test(bytes_have_a_bucket_of_their_own),
        cmocka_unit_test(refused_requests_take_nothing),
        cmocka_unit_test(the_wait_is_enough_at_any_rate),
        cmocka_unit_test(a_day_has_a_quota_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "reporter/web/dispatch_day.h"

#define NOW    1790000000000LL
#define MINUTE 60000LL

static struct dispatch_day *day;

static int start(void **state)
{
    (void)state;
    day = dispatch_day_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    dispatch_day_free(day);
    return 0;
}

static struct outcome outcome(enum outcome_kind kind, int status, int64_t at_ms)
{
    struct outcome o = { .outcome = kind, .http_status = status, .at_ms = at_ms };
    strcpy(o.kind, "dispatch");
    strcpy(o.repo, "org/a");
    return o;
}

static void add(enum outcome_kind kind, int status, int64_t at_ms)
{
    struct outcome o = outcome(kind, status, at_ms);
    dispatch_day_add(day, &o, NOW);
}

static void dispatched(int64_t at_ms, int64_t after_ms, const char *source)
{
    struct outcome o = outcome(OUTCOME_DISPATCHED, 204, at_ms);
    o.received_ms = at_ms - after_ms;
    strcpy(o.source, source);
    dispatch_day_add(day, &o, NOW);
}

static void percentiles_are_at_most_19_percent_above(void **state)
{
    (void)state;
    for (int i = 1; i <= 1000; i++)
        dispatched(NOW - i * MINUTE, i, "");
    dispatched(NOW, 3600000, ""); /* one that is far off */
    struct dispatch_sums sums = dispatch_day_sums(day, NOW);
    assert_int_equal(sums.dispatched, 1001);
    assert_in_range(sums.p50_ms, 500, 595);
    assert_in_range(sums.p99_ms, 990, 1178);
}

static void what_was_redelivered_counts_and_has_no_time(void **state)
{
    (void)state;
    dispatched(NOW - MINUTE, 7200000, "redelivered");
    struct dispatch_sums sums = dispatch_day_sums(day, NOW);
    assert_int_equal(sums.dispatched, 1);
    assert_int_equal(sums.p50_ms, -1);
    assert_int_equal(sums.p99_ms, -1);
}

static void a_day_has_24_hours(void **state)
{
    (void)state;
    add(OUTCOME_FAILED, 404, NOW - 25 * 60 * MINUTE); /* read all the same, from a mock broker */
    dispatched(NOW - 22 * 60 * MINUTE, 100, "");
    add(OUTCOME_FAILED, 404, NOW - MINUTE);
    struct dispatch_sums sums = dispatch_day_sums(day, NOW);
    assert_int_equal(sums.dispatched, 1);
    assert_int_equal(sums.failed, 1);
    sums = dispatch_day_sums(day, NOW + 3 * 60 * MINUTE);
    assert_int_equal(sums.dispatched, 0);
    assert_int_equal(sums.p99_ms, -1);
    assert_int_equal(sums.failed, 1);
}

static void what_an_open_breaker_puts_off_is_named_until_an_answer(void **state)
{
    (void)state;
    struct broken_downstream one;
    struct outcome o = outcome(OUTCOME_WAITING, 0, NOW - MINUTE);
    strcpy(o.error, "our own budget is used up");
    dispatch_day_add(day, &o, NOW);
    assert_int_equal(dispatch_day_broken(day, NOW, &one, 1), 0);
    strcpy(o.error, BREAKER_REASON);
    dispatch_day_add(day, &o, NOW);
    assert_int_equal(dispatch_day_broken(day, NOW, &one, 1), 1);
    assert_string_equal(one.repo, "org/a");
    assert_int_equal(one.answered_ms, 0);
    assert_int_equal(one.put_off_ms, NOW - MINUTE);
    assert_int_equal(dispatch_day_broken(day, NOW + 15 * MINUTE, &one, 1), 0);
    add(OUTCOME_FAILED, 404, NOW - 6 * MINUTE); /* an answer before it, of another partition */
    add(OUTCOME_UNKNOWN, 502, NOW);             /* the probe */
    assert_int_equal(dispatch_day_broken(day, NOW, &one, 1), 1);
    assert_int_equal(one.answered_ms, NOW - 6 * MINUTE);
    add(OUTCOME_FAILED, 404, NOW); /* a refusal is an answer */
    assert_int_equal(dispatch_day_broken(day, NOW, &one, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(percentiles_are_at_most_19_percent_above, start, end),
        cmocka_unit_test_setup_teardown(what_was_redelivered_counts_and_has_no_time, start, end),
        cmocka_unit_test_setup_teardown(a_day_has_24_hours, start, end),
        cmocka_unit_test_setup_teardown(what_an_open_breaker_puts_off_is_named_until_an_answer,
                                        start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

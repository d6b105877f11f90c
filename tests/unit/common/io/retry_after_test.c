#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/io/retry_after.h"

#define NOW 1763700000000 /* 2025-11-21T04:40:00Z */

static int64_t until_of(const char *text)
{
    struct headers headers;
    int64_t until_ms = -1;
    headers_init(&headers);
    headers_put(&headers, "Retry-After", str_of(text));
    return retry_after(&headers, NOW, &until_ms) ? until_ms : -1;
}

static void seconds_and_dates_are_understood(void **state)
{
    (void)state;
    assert_int_equal(until_of("7"), NOW + 7000);
    assert_int_equal(until_of(" 0 "), NOW);
    assert_int_equal(until_of("Fri, 21 Nov 2025 04:40:09 GMT"), NOW + 9000);
    assert_int_equal(until_of("Fri, 21 Nov 2025 04:39:00 GMT"), NOW - 60000);
}

static void nobody_is_believed_further_than_a_day(void **state)
{
    (void)state;
    assert_int_equal(until_of("99999999999"), NOW + 86400000);
    assert_int_equal(until_of("Fri, 21 Nov 2035 04:40:09 GMT"), NOW + 86400000);
}

static void what_cannot_be_read_tells_nothing(void **state)
{
    (void)state;
    struct headers none;
    int64_t until_ms = 5;
    headers_init(&none);
    assert_false(retry_after(&none, NOW, &until_ms));
    assert_int_equal(until_ms, 5);
    assert_int_equal(until_of("soon"), -1);
    assert_int_equal(until_of("-1"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_and_dates_are_understood),
        cmocka_unit_test(nobody_is_believed_further_than_a_day),
        cmocka_unit_test(what_cannot_be_read_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

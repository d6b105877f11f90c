#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/worker/retry_ladder.h"

static void the_ladder_has_four_waits(void **state)
{
    static const int64_t waits[] = { 0, 10000, 60000, 600000, 3600000, 0 };
    (void)state;
    for (int attempt = 0; attempt < 6; attempt++)
        assert_int_equal(retry_wait_ms(attempt), waits[attempt]);
}

/* A record waits behind others of its kind only. */
static void the_shortest_delay_that_is_long_enough_is_chosen(void **state)
{
    static const struct {
        int64_t wait_ms;
        enum topic of_task, of_reporter;
    } rows[] = {
        { -1, TOPIC_DELAY_10S, TOPIC_RDELAY_1M },
        { 10000, TOPIC_DELAY_10S, TOPIC_RDELAY_1M },
        { 10001, TOPIC_DELAY_1M, TOPIC_RDELAY_1M },
        { 60000, TOPIC_DELAY_1M, TOPIC_RDELAY_1M },
        { 60001, TOPIC_DELAY_10M, TOPIC_RDELAY_10M },
        { 600000, TOPIC_DELAY_10M, TOPIC_RDELAY_10M },
        { 600001, TOPIC_DELAY_1H, TOPIC_RDELAY_1H },
        { 3600000, TOPIC_DELAY_1H, TOPIC_RDELAY_1H },
        { 86400000, TOPIC_DELAY_1H, TOPIC_RDELAY_1H },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int level = 1; level <= 4; level++)
            assert_int_equal(delay_topic_of(topic_of_tier(level), rows[i].wait_ms),
                             rows[i].of_task);
        assert_int_equal(delay_topic_of(TOPIC_CALLBACKS, rows[i].wait_ms), rows[i].of_reporter);
        assert_int_equal(delay_topic_of(TOPIC_RECONCILE, rows[i].wait_ms), rows[i].of_reporter);
    }
    assert_int_equal(delay_topic_ms(TOPIC_DELAY_10M), 600000);
    assert_int_equal(delay_topic_ms(TOPIC_RDELAY_1M), 60000);
    assert_int_equal(delay_topic_ms(TOPIC_RDELAY_1H), 3600000);
    assert_int_equal(delay_topic_ms(TOPIC_EVENTS), 0);
}

static void the_headers_say_where_when_and_why(void **state)
{
    struct headers h;
    (void)state;
    headers_init(&h);
    while (headers_put(&h, "foreign", STR_LIT("x")))
        ;
    delay_headers(&h, "crcr.callbacks", 1234, "HTTP 503");
    assert_true(str_is(headers_get(&h, "to_topic"), "crcr.callbacks"));
    assert_int_equal(headers_get_i64(&h, "not_before_ms", 0), 1234);
    assert_true(str_is(headers_get(&h, "error"), "HTTP 503"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ladder_has_four_waits),
        cmocka_unit_test(the_shortest_delay_that_is_long_enough_is_chosen),
        cmocka_unit_test(the_headers_say_where_when_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/redeliver.h"

#define MINUTE (60 * 1000LL)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define START  (1000 * DAY)

enum ended { WHOLE, A_PAYLOAD_FAILED, CUT_SHORT };

static struct redeliver_loop loop_of(int64_t look_ms)
{
    return (struct redeliver_loop){ .look_ms = look_ms, .every_ms = 5 * MINUTE };
}

/* One round that begins so long after START; how far it looked back. */
static int64_t round_at(struct redeliver_loop *loop, int64_t after_ms, enum ended ended)
{
    int64_t now_ms = START + after_ms, since_ms = redeliver_loop_begin(loop, now_ms);

    (void)redeliver_loop_end(loop, ended == CUT_SHORT ? ERR_RETRY : OK, ended == A_PAYLOAD_FAILED);
    return now_ms - since_ms;
}

static void what_fails_each_time_is_asked_for_ever_more_rarely(void **state)
{
    static const int64_t expected[] = { 30000, 60000, 120000, 240000, 300000, 300000 };
    struct redeliver_loop loop = loop_of(3 * DAY);

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_int_equal(redeliver_loop_end(&loop, OK, 1), expected[i]);
    assert_int_equal(redeliver_loop_end(&loop, OK, 0), 5 * MINUTE);
    assert_int_equal(redeliver_loop_end(&loop, OK, 1), 30000);
}

static void a_round_is_never_later_than_the_loop_asks_for(void **state)
{
    struct redeliver_loop loop = { .look_ms = 3 * DAY, .every_ms = 1000 };

    (void)state;
    assert_int_equal(redeliver_loop_end(&loop, OK, 1), 1000);
    assert_int_equal(redeliver_loop_end(&loop, OK, 1), 1000);
}

static void a_round_looks_back_a_little_before_the_last_one_that_left_nothing(void **state)
{
    struct redeliver_loop loop = loop_of(3 * DAY), near = loop_of(HOUR);

    (void)state;
    round_at(&loop, 0, WHOLE);
    assert_int_equal(round_at(&loop, HOUR, WHOLE), HOUR + 15 * MINUTE);
    assert_int_equal(round_at(&loop, 2 * HOUR, A_PAYLOAD_FAILED), HOUR + 15 * MINUTE);
    assert_int_equal(round_at(&loop, 3 * HOUR, CUT_SHORT), 2 * HOUR + 15 * MINUTE);
    assert_int_equal(round_at(&loop, 4 * HOUR, WHOLE), 3 * HOUR + 15 * MINUTE);
    round_at(&near, 0, WHOLE);
    assert_int_equal(round_at(&near, HOUR, WHOLE), HOUR);
}

static void all_is_looked_through_at_first_and_once_a_day(void **state)
{
    struct redeliver_loop loop = loop_of(3 * DAY);

    (void)state;
    assert_int_equal(round_at(&loop, 0, WHOLE), 3 * DAY);
    assert_int_equal(round_at(&loop, DAY - 2, WHOLE), DAY - 2 + 15 * MINUTE);
    assert_int_equal(round_at(&loop, DAY - 1, WHOLE), 1 + 15 * MINUTE);
    assert_int_equal(round_at(&loop, DAY, WHOLE), 3 * DAY);
    assert_int_equal(round_at(&loop, DAY + 1, WHOLE), 1 + 15 * MINUTE);
}

static void all_is_looked_through_no_more_often_while_a_payload_fails_each_time(void **state)
{
    struct redeliver_loop loop = loop_of(7 * DAY);
    int sweeps = 0;

    (void)state;
    round_at(&loop, 0, WHOLE);
    for (int64_t after_ms = 5 * MINUTE; after_ms <= 3 * DAY; after_ms += 5 * MINUTE)
        sweeps += round_at(&loop, after_ms, A_PAYLOAD_FAILED) == 7 * DAY;
    assert_int_equal(sweeps, 3);
}

static void what_was_not_looked_through_to_its_end_is_by_the_next_round(void **state)
{
    struct redeliver_loop loop = loop_of(3 * DAY);

    (void)state;
    round_at(&loop, 0, WHOLE);
    round_at(&loop, DAY - 1, WHOLE);
    assert_int_equal(round_at(&loop, DAY, CUT_SHORT), 3 * DAY);
    assert_int_equal(round_at(&loop, DAY + 1, WHOLE), 3 * DAY);
    assert_int_equal(round_at(&loop, DAY + 2, WHOLE), 1 + 15 * MINUTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_each_time_is_asked_for_ever_more_rarely),
        cmocka_unit_test(a_round_is_never_later_than_the_loop_asks_for),
        cmocka_unit_test(a_round_looks_back_a_little_before_the_last_one_that_left_nothing),
        cmocka_unit_test(all_is_looked_through_at_first_and_once_a_day),
        cmocka_unit_test(all_is_looked_through_no_more_often_while_a_payload_fails_each_time),
        cmocka_unit_test(what_was_not_looked_through_to_its_end_is_by_the_next_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

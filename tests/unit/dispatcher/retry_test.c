#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/retry.h"

#define NOW 1000000000000LL

static struct github_answer answer(enum err err)
{
    return (struct github_answer){ .err = err };
}

static struct github_answer limit(int64_t wait_ms)
{
    return (struct github_answer){
        .err = ERR_RETRY, .status = 429, .limited = true, .wait_until_ms = NOW + wait_ms
    };
}

static void success_is_the_end(void **state)
{
    (void)state;
    struct github_answer a = answer(OK);
    struct retry r = retry_decide(&a, 1, NOW, 0);
    assert_int_equal(r.next, RETRY_DONE);
    assert_int_equal(r.outcome, OUTCOME_DISPATCHED);
    assert_false(r.maybe_duplicate);
}

static void a_refusal_goes_to_the_dlq_at_once(void **state)
{
    (void)state;
    struct github_answer a = answer(ERR_REFUSE);
    struct retry r = retry_decide(&a, 1, NOW, 0);
    assert_int_equal(r.next, RETRY_DEAD);
    assert_string_equal(r.cls, "refused");
    assert_int_equal(r.outcome, OUTCOME_FAILED);
}

static void the_waits_are_10s_1m_10m_1h_then_exhausted(void **state)
{
    (void)state;
    static const struct {
        enum retry_next next;
        enum topic delay;
        int64_t wait_ms;
    } expected[] = {
        { RETRY_HOLD, TOPIC_DELAY_10S, 10000 },
        { RETRY_PARK, TOPIC_DELAY_1M, 60000 },
        { RETRY_PARK, TOPIC_DELAY_10M, 600000 },
        { RETRY_PARK, TOPIC_DELAY_1H, 3600000 },
    };
    struct github_answer a = answer(ERR_RETRY);
    for (int attempt = 1; attempt <= 4; attempt++) {
        struct retry late = retry_decide(&a, attempt, NOW, 1);
        struct retry early = retry_decide(&a, attempt, NOW, 0);
        assert_int_equal(late.next, expected[attempt - 1].next);
        assert_int_equal(late.delay, expected[attempt - 1].delay);
        assert_int_equal(late.at_ms - NOW, expected[attempt - 1].wait_ms);
        assert_int_equal(early.at_ms - NOW, expected[attempt - 1].wait_ms * 8 / 10);
        assert_int_equal(late.attempt, attempt + 1);
        assert_int_equal(late.outcome, OUTCOME_WAITING);
        assert_false(late.maybe_duplicate);
    }
    struct retry last = retry_decide(&a, 5, NOW, 1);
    assert_int_equal(last.next, RETRY_DEAD);
    assert_string_equal(last.cls, "exhausted");
    assert_int_equal(last.outcome, OUTCOME_FAILED);
}

static void no_answer_is_unknown_and_the_next_is_perhaps_a_duplicate(void **state)
{
    (void)state;
    struct github_answer a = answer(ERR_UNKNOWN);
    struct retry r = retry_decide(&a, 1, NOW, 0);
    assert_int_equal(r.outcome, OUTCOME_UNKNOWN);
    assert_true(r.maybe_duplicate);
    assert_int_equal(r.attempt, 2);
    assert_int_equal(retry_decide(&a, 5, NOW, 0).next, RETRY_DEAD);
}

static void a_limit_costs_no_attempt_and_is_obeyed_to_the_millisecond(void **state)
{
    (void)state;
    for (int attempt = 1; attempt <= 9; attempt += 4) {
        struct github_answer a = limit(5000);
        struct retry r = retry_decide(&a, attempt, NOW, 0);
        assert_int_equal(r.next, RETRY_HOLD);
        assert_int_equal(r.attempt, attempt);
        assert_int_equal(r.at_ms, NOW + 5000);
        assert_int_equal(r.outcome, OUTCOME_WAITING);
        assert_int_equal(retry_decide(&a, attempt, NOW, 1).at_ms, NOW + 5000); /* our own moment */
        a.sent_ms = 1;                                                         /* GitHub's */
        assert_true(retry_decide(&a, attempt, NOW, 1).at_ms > NOW + 5000);
    }
}

static void a_long_limit_is_parked_where_waits_of_its_length_are(void **state)
{
    (void)state;
    static const struct {
        int64_t wait_ms;
        enum topic delay;
    } expected[] = {
        { 10001, TOPIC_DELAY_1M },   { 60000, TOPIC_DELAY_1M },    { 61000, TOPIC_DELAY_10M },
        { 3600000, TOPIC_DELAY_1H }, { 86400000, TOPIC_DELAY_1H },
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct github_answer a = limit(expected[i].wait_ms);
        struct retry r = retry_decide(&a, 2, NOW, 0);
        assert_int_equal(r.next, RETRY_PARK);
        assert_int_equal(r.delay, expected[i].delay);
        assert_int_equal(r.at_ms, NOW + expected[i].wait_ms);
        assert_int_equal(r.attempt, 2);
    }
}

static void a_5xx_with_retry_after_waits_at_least_that_long(void **state)
{
    (void)state;
    struct github_answer a = { .err = ERR_UNKNOWN, .status = 503, .wait_until_ms = NOW + 120000 };
    struct retry r = retry_decide(&a, 1, NOW, 0);
    assert_int_equal(r.next, RETRY_PARK);
    assert_int_equal(r.at_ms, NOW + 120000);
    assert_int_equal(r.attempt, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_the_end),
        cmocka_unit_test(a_refusal_goes_to_the_dlq_at_once),
        cmocka_unit_test(the_waits_are_10s_1m_10m_1h_then_exhausted),
        cmocka_unit_test(no_answer_is_unknown_and_the_next_is_perhaps_a_duplicate),
        cmocka_unit_test(a_limit_costs_no_attempt_and_is_obeyed_to_the_millisecond),
        cmocka_unit_test(a_long_limit_is_parked_where_waits_of_its_length_are),
        cmocka_unit_test(a_5xx_with_retry_after_waits_at_least_that_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

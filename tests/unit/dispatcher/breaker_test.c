#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/breaker.h"

#define A   STR_LIT("org/a")
#define B   STR_LIT("org/b")
#define NOW 1000000LL

static const struct github_answer unknown = { .err = ERR_UNKNOWN, .status = 502, .sent_ms = 1 };
static const struct github_answer unsent = { .err = ERR_RETRY, .limited = true };
static const struct github_answer sent = { .err = OK, .status = 204, .sent_ms = 1 };
static const struct github_answer refused = { .err = ERR_REFUSE, .status = 422, .sent_ms = 1 };

static int setup(void **state)
{
    *state = breakers_new();
    return 0;
}

static int teardown(void **state)
{
    breakers_free(*state);
    return 0;
}

static bool allows(void **state, struct str repo, int64_t now_ms)
{
    return breaker_allows(*state, repo, now_ms);
}

static enum breaker_change fail_times(void **state, int times, int64_t now_ms)
{
    enum breaker_change change = BREAKER_SAME;
    while (times--)
        change = breaker_answered(*state, A, &unknown, now_ms);
    return change;
}

static void opens_at_the_last_of_a_run_of_failures(void **state)
{
    assert_int_equal(fail_times(state, 4, NOW), BREAKER_SAME);
    assert_true(allows(state, A, NOW));
    assert_int_equal(fail_times(state, 1, NOW), BREAKER_OPENED); /* the fifth */
    assert_false(allows(state, A, NOW));
    assert_int_equal(fail_times(state, 1, NOW), BREAKER_SAME); /* it is open already */
}

static void one_downstream_says_nothing_of_another(void **state)
{
    fail_times(state, BREAKER_FAILURES, NOW);
    assert_true(allows(state, B, NOW));
}

static void a_success_between_begins_the_run_anew(void **state)
{
    fail_times(state, BREAKER_FAILURES - 1, NOW);
    assert_int_equal(breaker_answered(*state, A, &sent, NOW), BREAKER_SAME);
    assert_int_equal(fail_times(state, BREAKER_FAILURES - 1, NOW), BREAKER_SAME);
    assert_true(allows(state, A, NOW));
}

static void one_probe_goes_in_each_period(void **state)
{
    const int64_t at_ms = NOW + BREAKER_PROBE_MS;
    fail_times(state, BREAKER_FAILURES, NOW);
    assert_false(allows(state, A, at_ms - 1));
    assert_true(allows(state, A, at_ms));
    assert_false(allows(state, A, at_ms));
    fail_times(state, 1, NOW + BREAKER_PROBE_MS + 500);
    assert_false(allows(state, A, NOW + 2 * BREAKER_PROBE_MS - 1));
    assert_true(allows(state, A, NOW + 2 * BREAKER_PROBE_MS));
}

static void it_says_since_when_it_is_open(void **state)
{
    fail_times(state, BREAKER_FAILURES - 1, NOW);
    assert_true(breaker_open_since(*state, A, NOW + 5) == NOW + 5);
    fail_times(state, 1, NOW + 10);
    assert_true(allows(state, A, NOW + 10 + BREAKER_PROBE_MS));
    fail_times(state, 1, NOW + BREAKER_PROBE_MS + 500);
    assert_true(breaker_open_since(*state, A, NOW + 900000) == NOW + 10);
    assert_true(breaker_open_since(*state, B, NOW) == NOW);
}

static void a_probe_that_asked_nothing_leaves_its_place_to_another(void **state)
{
    const int64_t at_ms = NOW + BREAKER_PROBE_MS;
    fail_times(state, BREAKER_FAILURES, NOW);
    assert_true(allows(state, A, at_ms));
    assert_false(allows(state, A, at_ms + 1));
    assert_int_equal(breaker_answered(*state, A, &unsent, at_ms + 1), BREAKER_SAME);
    assert_true(allows(state, A, at_ms + 1));
    assert_false(allows(state, A, at_ms + BREAKER_PROBE_MS));
    assert_int_equal(breaker_answered(*state, B, &unsent, at_ms), BREAKER_SAME); /* not failing */
    assert_true(allows(state, B, at_ms));
}

static void what_was_under_way_when_it_opened_puts_no_probe_off(void **state)
{
    fail_times(state, BREAKER_FAILURES, NOW);
    fail_times(state, 3, NOW + 20000);
    assert_true(allows(state, A, NOW + BREAKER_PROBE_MS));
}

static void heals_at_the_first_answer_also_a_refusal(void **state)
{
    const struct github_answer *const answers[] = { &sent, &refused };
    for (size_t i = 0; i < 2; i++) {
        fail_times(state, BREAKER_FAILURES, NOW);
        assert_int_equal(breaker_answered(*state, A, answers[i], NOW), BREAKER_CLOSED);
        assert_true(allows(state, A, NOW));
        assert_int_equal(fail_times(state, BREAKER_FAILURES - 1, NOW), BREAKER_SAME);
        assert_int_equal(breaker_answered(*state, A, &sent, NOW), BREAKER_SAME);
    }
}

static void limits_and_what_was_not_sent_say_nothing(void **state)
{
    static const struct github_answer nothings[] = {
        { .err = ERR_RETRY, .status = 429, .sent_ms = 1, .limited = true },
        { .err = ERR_RETRY, .status = 401, .sent_ms = 1 },
        { .err = ERR_UNKNOWN },
        { .err = ERR_REFUSE, .status = 404 },
    };
    fail_times(state, BREAKER_FAILURES - 1, NOW);
    for (size_t i = 0; i < sizeof(nothings) / sizeof(nothings[0]); i++)
        assert_int_equal(breaker_answered(*state, A, &nothings[i], NOW), BREAKER_SAME);
    assert_int_equal(fail_times(state, 1, NOW), BREAKER_OPENED);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(breaker_answered(*state, A, &nothings[i], NOW), BREAKER_SAME);
    assert_false(allows(state, A, NOW));
}

static void count_forgotten(void *opaque, struct str repo)
{
    assert_true(str_eq(repo, A));
    ++*(int *)opaque;
}

static int forget(void **state, int64_t unasked_since_ms)
{
    int forgotten = 0;
    breakers_forget(*state, unasked_since_ms, count_forgotten, &forgotten);
    return forgotten;
}

static void one_that_nobody_asks_for_any_more_is_forgotten(void **state)
{
    fail_times(state, BREAKER_FAILURES, NOW);
    assert_false(allows(state, A, NOW + 10));
    assert_int_equal(forget(state, NOW + 9), 0);
    assert_false(allows(state, A, NOW + 11));
    assert_int_equal(forget(state, NOW + 11), 1);
    assert_true(allows(state, A, NOW + 12));
    assert_int_equal(fail_times(state, 1, NOW + 13), BREAKER_SAME);
    assert_int_equal(forget(state, NOW + 12), 0);
}

static void one_that_never_opened_is_forgotten_in_silence(void **state)
{
    breaker_answered(*state, B, &unknown, NOW);
    fail_times(state, BREAKER_FAILURES, NOW);
    assert_int_equal(forget(state, INT64_MAX), 1);
    assert_true(allows(state, A, NOW));
    assert_int_equal(forget(state, INT64_MAX), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(opens_at_the_last_of_a_run_of_failures),
        TEST(one_downstream_says_nothing_of_another),
        TEST(a_success_between_begins_the_run_anew),
        TEST(one_probe_goes_in_each_period),
        TEST(it_says_since_when_it_is_open),
        TEST(a_probe_that_asked_nothing_leaves_its_place_to_another),
        TEST(what_was_under_way_when_it_opened_puts_no_probe_off),
        TEST(heals_at_the_first_answer_also_a_refusal),
        TEST(limits_and_what_was_not_sent_say_nothing),
        TEST(one_that_nobody_asks_for_any_more_is_forgotten),
        TEST(one_that_never_opened_is_forgotten_in_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

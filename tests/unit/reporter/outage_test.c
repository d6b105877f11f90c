#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reporter/outage.h"

#define NOW 1000000LL

static const struct github_answer none = { .err = ERR_UNKNOWN, .status = 503, .sent_ms = 1 };
static const struct github_answer not_sent = { .err = ERR_RETRY };
static const struct github_answer good = { .err = OK, .status = 201, .sent_ms = 1 };
static const struct github_answer refusal = { .err = ERR_REFUSE, .status = 422, .sent_ms = 1 };
static const struct github_answer limit = {
    .err = ERR_RETRY, .status = 403, .limited = true, .sent_ms = 1
};
static const struct github_answer our_limit = { .err = ERR_RETRY, .limited = true, .ours = true };
static const struct github_answer remembered = { .err = ERR_REFUSE };

static struct outage away(void)
{
    struct outage o = { .failed = 0 };
    assert_int_equal(outage_answered(&o, 1, &none, NOW), OUTAGE_SAME);
    assert_int_equal(outage_answered(&o, 2, &not_sent, NOW), OUTAGE_SAME);
    assert_false(outage_is(&o));
    assert_int_equal(outage_answered(&o, 3, &none, NOW), OUTAGE_BEGAN);
    assert_true(outage_is(&o));
    return o;
}

static void several_commits_without_an_answer_are_an_outage(void **state)
{
    (void)state;
    struct outage o = away();
    assert_int_equal(outage_answered(&o, 4, &none, NOW), OUTAGE_SAME);
}

static void one_commit_that_always_fails_is_none(void **state)
{
    struct outage o = { .failed = 0 };
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(outage_answered(&o, 7, &none, NOW), OUTAGE_SAME);
    assert_true(outage_allows(&o, NOW));
}

static void an_answer_in_between_begins_the_count_anew(void **state)
{
    (void)state;
    static const struct github_answer *const answers[] = { &good, &refusal, &limit };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct outage o = { .failed = 0 };
        outage_answered(&o, 1, &none, NOW);
        outage_answered(&o, 2, &none, NOW);
        assert_int_equal(outage_answered(&o, 3, answers[i], NOW), OUTAGE_SAME);
        assert_int_equal(outage_answered(&o, 4, &none, NOW), OUTAGE_SAME);
        assert_false(outage_is(&o));
    }
}

static void one_probe_at_a_time_goes_while_it_lasts(void **state)
{
    (void)state;
    struct outage o = away();
    assert_false(outage_allows(&o, NOW + OUTAGE_PROBE_MS - 1));
    assert_true(outage_allows(&o, NOW + OUTAGE_PROBE_MS));
    assert_false(outage_allows(&o, NOW + OUTAGE_PROBE_MS));
    outage_answered(&o, 9, &none, NOW + OUTAGE_PROBE_MS + 1);
    assert_false(outage_allows(&o, NOW + 2 * OUTAGE_PROBE_MS - 1));
    assert_true(outage_allows(&o, NOW + 2 * OUTAGE_PROBE_MS));
}

static void a_pass_that_asked_nothing_is_no_probe(void **state)
{
    (void)state;
    struct outage o = away();
    assert_true(outage_allows(&o, NOW + OUTAGE_PROBE_MS));
    outage_unasked(&o);
    assert_true(outage_allows(&o, NOW + OUTAGE_PROBE_MS));
    assert_false(outage_allows(&o, NOW + OUTAGE_PROBE_MS));
}

static void any_answer_of_githubs_ends_it(void **state)
{
    (void)state;
    static const struct github_answer *const answers[] = { &good, &refusal, &limit };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct outage o = away();
        assert_int_equal(outage_answered(&o, 1, answers[i], NOW), OUTAGE_ENDED);
        assert_true(outage_allows(&o, NOW) && outage_allows(&o, NOW));
    }
}

static void what_we_know_without_asking_ends_nothing(void **state)
{
    (void)state;
    struct outage o = away();
    assert_int_equal(outage_answered(&o, 1, &our_limit, NOW), OUTAGE_SAME);
    assert_int_equal(outage_answered(&o, 1, &remembered, NOW), OUTAGE_SAME);
    assert_true(outage_is(&o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_commits_without_an_answer_are_an_outage),
        cmocka_unit_test(one_commit_that_always_fails_is_none),
        cmocka_unit_test(an_answer_in_between_begins_the_count_anew),
        cmocka_unit_test(one_probe_at_a_time_goes_while_it_lasts),
        cmocka_unit_test(a_pass_that_asked_nothing_is_no_probe),
        cmocka_unit_test(any_answer_of_githubs_ends_it),
        cmocka_unit_test(what_we_know_without_asking_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

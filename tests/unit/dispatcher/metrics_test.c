#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/task.h"
#include "dispatcher/metrics.h"

static const char *reason_of(enum outcome_kind kind, int status)
{
    static char reason[16];
    const struct outcome o = { .outcome = kind, .http_status = status };
    dispatcher_outcome_reason(&o, reason);
    return reason;
}

static void the_reason_of_an_outcome_is_one_of_a_few_words(void **state)
{
    (void)state;
    assert_string_equal(reason_of(OUTCOME_DISPATCHED, 204), "none");
    assert_string_equal(reason_of(OUTCOME_FAILED, 404), "http_404");
    assert_string_equal(reason_of(OUTCOME_FAILED, 451), "http_4xx");
    assert_string_equal(reason_of(OUTCOME_UNKNOWN, 502), "http_5xx");
    assert_string_equal(reason_of(OUTCOME_FAILED, 302), "http_other");
    assert_string_equal(reason_of(OUTCOME_UNKNOWN, 0), "no_answer");
    assert_string_equal(reason_of(OUTCOME_WAITING, 0), "held");
    assert_string_equal(reason_of(OUTCOME_FAILED, 0), "not_sent");
    assert_string_equal(reason_of(OUTCOME_SUPERSEDED, 0), "none");
}

static void an_outcome_counts_for_its_tier_and_for_its_downstream(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
    const struct outcome o = {
        .repo = "o/r", .level = 4, .outcome = OUTCOME_FAILED, .http_status = 404
    };
    dispatcher_count_outcome(m, &o);
    dispatcher_count_outcome(m, &o);
    assert_float_equal(
        metrics_value(m, M_OUTCOMES, METRIC_LABELS(STR_LIT("L4"), STR_LIT("failed"))), 2, 1e-9);
    assert_float_equal(
        metrics_value(m, M_REPO_OUTCOMES,
                      METRIC_LABELS(STR_LIT("o/r"), STR_LIT("failed"), STR_LIT("http_404"))),
        2, 1e-9);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reason_of_an_outcome_is_one_of_a_few_words),
        cmocka_unit_test(an_outcome_counts_for_its_tier_and_for_its_downstream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

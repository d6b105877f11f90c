/* The items of a scorecard that the relay measures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "deploy/crcrctl/scorecard.h"

#define DAY (24 * 3600 * (int64_t)1000)
#define NOW (100 * DAY)

static struct score_measure *m;
static struct scorecard card;

static int start(void **state)
{
    (void)state;
    m = score_measure_new(STR_LIT("org/a"));
    card = (struct scorecard){ .platform = "X" };
    return 0;
}

static int end(void **state)
{
    (void)state;
    score_measure_free(m);
    return 0;
}

static void job(const char *repo, int level, const char *run, const char *conclusion, int64_t at_ms)
{
    struct result_record row;

    result_record_init(&row);
    row.state = JOB_COMPLETED;
    row.level = level;
    row.repo = (char *)repo;
    row.run_id = (char *)run;
    row.workflow_name = row.job_name = "test";
    row.conclusion = (char *)conclusion;
    score_measure_put(m, &row, at_ms);
}

static const struct score_item *item(const char *name)
{
    return &card.at[score_rule_find(str_of(name))];
}

static void without_jobs_the_file_stands_and_says_so(void **state)
{
    (void)state;
    job("org/other", 2, "1", "success", NOW - DAY);
    job("org/a", 1, "1", "success", NOW - DAY); /* L1 is not on the HUD */
    card.at[score_rule_find(STR_LIT("ci_cd.stability"))].score = 3;
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.stability")->score, 3);
    assert_false(item("ci_cd.stability")->measured);
    assert_non_null(strstr(item("ci_cd.stability")->note, "not measured"));
}

static void results_on_the_hud_are_public(void **state)
{
    (void)state;
    job("ORG/A", 2, "1", "success", NOW - DAY);
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.accessibility")->score, 2);
    assert_true(item("ci_cd.accessibility")->measured);
}

static void five_percent_flaky_is_too_much(void **state)
{
    static const char *const runs[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
                                        "k", "l", "m", "n", "o", "p", "q", "r", "s", "t" };
    (void)state;
    for (size_t i = 0; i < 20; i++)
        job("org/a", 2, runs[i], "success", NOW - DAY);
    job("org/a", 2, "z", "failure", NOW - DAY); /* fails always: not flaky */
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.tests_stability")->score, 4);
    job("org/a", 2, "a", "failure", NOW - 2 * DAY);
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.tests_stability")->score, 4); /* 1 of 21 */
    job("org/a", 2, "b", "failure", NOW - 2 * DAY);
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.tests_stability")->score, 0);
}

static void three_days_without_a_success_are_an_outage(void **state)
{
    (void)state;
    job("org/a", 2, "3", "success", NOW - 10 * DAY); /* then nothing to do: no outage */
    job("org/a", 2, "2", "failure", NOW - 3 * DAY);
    score_measure_fill(m, NOW, &card);
    assert_int_equal(item("ci_cd.stability")->score, 4);
    score_measure_fill(m, NOW + 1, &card);
    assert_int_equal(item("ci_cd.stability")->score, 0);
    job("org/a", 2, "1", "success", NOW - DAY); /* in any order */
    score_measure_fill(m, NOW + DAY, &card);
    assert_int_equal(item("ci_cd.stability")->score, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_jobs_the_file_stands_and_says_so, start, end),
        cmocka_unit_test_setup_teardown(results_on_the_hud_are_public, start, end),
        cmocka_unit_test_setup_teardown(five_percent_flaky_is_too_much, start, end),
        cmocka_unit_test_setup_teardown(three_days_without_a_success_are_an_outage, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

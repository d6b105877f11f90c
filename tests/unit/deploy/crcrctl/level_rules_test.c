#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "deploy/crcrctl/verbs.h"

#define MINUTE 60000
#define HOUR   (60 * (int64_t)MINUTE)
#define DAY    (24 * HOUR)

/* Exactly at each threshold, on the good side. */
static const struct level_figures good = {
    .jobs = 200,
    .successful = 180,
    .timed_out = 1,
    .queued = 200,
    .queue_mean_ms = 30 * MINUTE - 1,
    .timed = 199,
    .overrun = 1,
    .runs = 50,
    .e2e_median_ms = 3 * HOUR - 1,
};

static const struct level_criterion *criterion(const struct level_verdict *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->at[i].name, name) == 0)
            return &v->at[i];
    fail_msg("no criterion %s", name);
    return NULL;
}

/* The defaults of `crcrctl levels`. */
static struct level_rules rules_of_the_table(void)
{
    char name[] = "levels", *argv[] = { name, NULL };
    const struct ctl ctl = { .verb = name };
    struct args args;
    int words;

    assert_int_equal(args_parse(&ctl, args_verb(1, argv, &words), 1, argv, &args), CTL_OK);
    return args.rules;
}

static struct level_verdict ready(struct level_figures figures, int64_t tenure_ms)
{
    struct level_rules rules = rules_of_the_table();
    struct level_verdict v;
    level_verdict_get(&rules, 2, &figures, tenure_ms, &v);
    return v;
}

static struct level_verdict keep(struct level_figures figures)
{
    struct level_rules rules = rules_of_the_table();
    struct level_verdict v;
    level_verdict_get(&rules, 3, &figures, -1, &v);
    return v;
}

static void the_pages_go_by_the_defaults_of_the_options(void **state)
{
    (void)state;
    const struct level_rules rules = rules_of_the_table(), *pages = &level_rules_default;
    assert_float_equal(rules.min_pass_pct, pages->min_pass_pct, 0);
    assert_float_equal(rules.max_overrun_pct, pages->max_overrun_pct, 0);
    assert_float_equal(rules.max_timeout_pct, pages->max_timeout_pct, 0);
    assert_int_equal(rules.max_e2e_ms, pages->max_e2e_ms);
    assert_int_equal(rules.max_queue_ms, pages->max_queue_ms);
    assert_int_equal(rules.overrun_ms, pages->overrun_ms);
    assert_int_equal(rules.min_tenure_ms, pages->min_tenure_ms);
    assert_int_equal(rules.ready_window_ms, pages->ready_window_ms);
    assert_int_equal(rules.demote_window_ms, pages->demote_window_ms);
}

static void ready_when_every_criterion_is_met(void **state)
{
    (void)state;
    struct level_verdict v = ready(good, 30 * DAY);
    assert_int_equal(v.n, 6);
    assert_true(v.all_ok);
    assert_false(v.no_jobs);
    assert_int_equal(criterion(&v, "pass_rate")->over, 200);
    assert_int_equal(criterion(&v, "e2e_p50")->over, 50);
    assert_true(criterion(&v, "pass_rate")->value == 90.0);
}

/* One step over each threshold: that criterion alone is not met. */
static void each_criterion_alone_makes_it_not_ready(void **state)
{
    (void)state;
    struct level_figures f[6] = { good, good, good, good, good, good };
    static const char *const names[6] = { "tenure",  "pass_rate",  "e2e_p50",
                                          "overrun", "queue_mean", "timeouts" };
    f[1].successful = 179;
    f[2].e2e_median_ms = 3 * HOUR;
    f[3].overrun = 2; /* 2 of 199 */
    f[4].queue_mean_ms = 30 * MINUTE;
    f[5].timed_out = 2; /* 2 of 200 are 1 % */
    for (size_t i = 0; i < 6; i++) {
        struct level_verdict v = ready(f[i], i == 0 ? 30 * DAY - 1 : 30 * DAY);
        assert_false(v.all_ok);
        for (size_t k = 0; k < v.n; k++)
            assert_int_equal(v.at[k].ok, strcmp(v.at[k].name, names[i]) != 0);
    }
}

static void what_was_not_measured_makes_nobody_ready_and_demotes_nobody(void **state)
{
    (void)state;
    struct level_figures nothing = { .queue_mean_ms = -1, .e2e_median_ms = -1 };
    struct level_verdict v = ready(nothing, 40 * DAY);
    assert_true(v.no_jobs);
    assert_false(v.all_ok);
    assert_true(criterion(&v, "tenure")->ok);
    assert_false(criterion(&v, "pass_rate")->ok);
    assert_false(criterion(&v, "e2e_p50")->known);
    v = keep(nothing);
    assert_true(v.no_jobs);
    assert_true(v.all_ok);
    struct level_figures no_queue = good;
    no_queue.queued = 0;
    no_queue.queue_mean_ms = -1;
    assert_false(ready(no_queue, 40 * DAY).all_ok);
    assert_false(ready(good, -1).all_ok);
}

static void each_of_three_criteria_demotes(void **state)
{
    (void)state;
    struct level_figures bad_pass = good, bad_timeouts = good, bad_e2e = good, slow_queue = good;
    assert_true(keep(good).all_ok);
    bad_pass.successful = 179;
    assert_false(keep(bad_pass).all_ok);
    bad_timeouts.timed_out = 2;
    assert_false(keep(bad_timeouts).all_ok);
    bad_e2e.e2e_median_ms = 3 * HOUR;
    assert_false(keep(bad_e2e).all_ok);
    slow_queue.queue_mean_ms = DAY; /* keeps nobody from staying */
    slow_queue.overrun = 100;
    assert_true(keep(slow_queue).all_ok);
}

static void the_reason_names_what_is_not_met_and_what_is_wanted(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text;
    struct level_figures bad = good;
    bad.successful = 170;
    bad.e2e_median_ms = 4 * HOUR + 5 * MINUTE;
    struct level_verdict v = keep(bad);
    buf_init(&text, 1000);
    level_reason(&v, &text);
    assert_string_equal(text.ptr, "pass_rate 85.0 %, at least 90.0 % wanted, over 200 jobs; "
                                  "e2e_p50 4 h 05 min, below 3 h 00 min wanted, over 50 runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_go_by_the_defaults_of_the_options),
        cmocka_unit_test(ready_when_every_criterion_is_met),
        cmocka_unit_test(each_criterion_alone_makes_it_not_ready),
        cmocka_unit_test(what_was_not_measured_makes_nobody_ready_and_demotes_nobody),
        cmocka_unit_test(each_of_three_criteria_demotes),
        cmocka_unit_test(the_reason_names_what_is_not_met_and_what_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Purses: slices of the shared budget, and this process's part while that is away. */

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/budget.h"
#include "common/github/budget_parts.h"

#define REPO STR_LIT("Org/repo")

/* The shared budget, as view/budget would be. */
struct shared {
    struct budget_windows windows;
    bool away;
    int asks;
    struct budget_ask last;
    char account[200];
};

static enum err take(void *opaque, const struct budget_rules *rules, const struct budget_ask *ask,
                     struct budget_grant *ret, struct why *why)
{
    struct shared *s = opaque;
    if (s->away)
        return why_set(why, ERR_RETRY, "away");
    s->asks++;
    s->last = *ask;
    str_copy(s->account, sizeof(s->account), ask->account);
    budget_windows_ask(&s->windows, rules, ask, false, clock_mono_ms(), ret);
    return OK;
}

static struct budget_rules rules_of(int64_t points)
{
    return (struct budget_rules){
        .limit = { [BUDGET_POINTS_MINUTE] = points },
        .minute_ms = 60000,
        .kept_percent = 20,
        .replicas = 8,
        .content = { [BUDGET_CHECK_RUN] = true },
    };
}

static int sent(struct purses *p, int calls, struct github_answer *refusal)
{
    int n = 0;
    for (int i = 0; i < calls; i++)
        n += purses_take(p, REPO, "POST", "/repos/org/repo/dispatches", false, refusal);
    return n;
}

static void slices_grow_so_that_a_call_usually_asks_nobody(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_REQUESTS_HOUR] = 100000;
    struct shared shared = { 0 };
    struct github_answer refusal;
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(p, 1000, &refusal), 1000);
    assert_in_range(shared.asks, 5, 1000 / 8);
    assert_string_equal(shared.account, "org");
    purses_free(p);
    github_budget_free(budget);
}

static void two_threads_do_not_pass_the_limit_together(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *one = purses_new(budget, take, &shared, false);
    struct purses *two = purses_new(budget, take, &shared, false);
    int n = 0;
    for (int i = 0; i < 200; i++)
        n += sent(one, 1, &refusal) + sent(two, 1, &refusal);
    assert_in_range(n, 180 - 2 * 9, 180); /* at most a slice of each is left over */
    purses_free(two);
    purses_free(one);
    github_budget_free(budget);
}

static void a_refusal_names_the_budget_and_spends_nothing(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 }, again;
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, true);
    assert_false(purses_refused(p, REPO, &again));
    assert_int_equal(sent(p, 145, &refusal), 144);
    assert_int_equal(refusal.err, ERR_RETRY);
    assert_true(refusal.limited && !refusal.told && refusal.sent_ms == 0 && refusal.status == 0);
    assert_non_null(strstr(refusal.reason, "our own budget of 900 points a minute (less 20 % for "
                                           "L4 and check runs) for org is used up until 20"));
    assert_true(refusal.wait_until_ms > clock_mono_ms() + 50000);
    assert_true(purses_refused(p, REPO, &again));
    assert_int_equal(again.wait_until_ms, refusal.wait_until_ms);
    assert_false(purses_refused(p, STR_LIT("other/repo"), &again));
    purses_free(p);
    github_budget_free(budget);
}

/* away: the threads of one process share it all the same. */
static void all_hear_of_it(bool away)
{
    struct budget_rules rules = rules_of(900);
    struct shared shared = { .away = away };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *one = purses_new(budget, take, &shared, true);
    struct purses *two = purses_new(budget, take, &shared, false);
    int64_t until_ms = clock_mono_ms() + 30000;
    purses_limited(one, REPO, until_ms);
    purses_limited(one, REPO, until_ms + 10); /* a call that was under way as well */
    assert_int_equal(shared.asks, away ? 0 : 1);
    assert_int_equal(sent(two, 1, &refusal), 0);
    assert_true(refusal.limited && refusal.told && !refusal.ours && refusal.sent_ms == 0);
    assert_in_range(refusal.wait_until_ms, until_ms - 100, until_ms + 1000);
    assert_non_null(strstr(refusal.reason, "GitHub told us to wait for org until 20"));
    if (away) /* the store here has one account */
        assert_true(
            purses_take(two, STR_LIT("other/repo"), "GET", "/repos/other/repo", false, &refusal));
    purses_free(two);
    purses_free(one);
    github_budget_free(budget);
}

static void a_limit_of_github_s_is_told_to_all(void **state)
{
    (void)state;
    all_hear_of_it(false);
    all_hear_of_it(true);
}

/* Ours are told a place in a queue, which says nothing of when GitHub takes calls again. */
static void a_limit_of_github_s_lasts_no_longer_for_a_queue_of_ours(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    (void)state;
    rules.minute_ms = 100;
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    struct purses *other = purses_new(budget, take, &shared, true);
    sent(p, 100000, &refusal);
    int64_t until_ms = clock_mono_ms() + 5000;
    assert_true(refusal.ours && refusal.wait_until_ms > until_ms + 1000);
    purses_limited(other, REPO, until_ms);
    do
        sent(p, 1, &refusal);
    while (refusal.ours && clock_mono_ms() < until_ms - 1000);
    assert_true(refusal.told);
    assert_in_range(refusal.wait_until_ms, until_ms - 100, until_ms + 100);
    purses_free(other);
    purses_free(p);
    github_budget_free(budget);
}

static void what_costs_another_part_goes_on(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_CONTENT_MINUTE] = 10;
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    int made[2] = { 0 };
    for (int low = 1; low >= 0; low--)
        while (purses_take(p, REPO, "POST", "/repos/org/repo/check-runs", low, &refusal))
            made[low]++;
    assert_int_equal(made[1], 8);
    assert_int_equal(made[0], 2);
    assert_true(purses_held(p, REPO, BUDGET_CHECK_RUN, false, &refusal) && refusal.ours);
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 60000, 67000);
    assert_false(purses_held(p, REPO, BUDGET_WRITE, true, &refusal));
    assert_true(purses_take(p, REPO, "PATCH", "/repos/org/repo/check-runs/7", true, &refusal));
    purses_free(p);
    github_budget_free(budget);
}

static void those_who_wait_are_told_different_moments_without_asking(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer first = { 0 }, later = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    sent(p, 181, &first);
    int asks = shared.asks;
    sent(p, 180, &later);
    assert_int_equal(shared.asks, asks);
    assert_in_range(later.wait_until_ms - first.wait_until_ms, 60000, 70000); /* a window later */
    purses_free(p);
    github_budget_free(budget);
}

static void the_higher_class_goes_when_the_lower_one_has_used_its_share(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *low = purses_new(budget, take, &shared, true);
    struct purses *high = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(low, 200, &refusal), 144);
    assert_int_equal(sent(high, 40, &refusal), 36);
    assert_null(strstr(refusal.reason, "less"));
    purses_free(high);
    purses_free(low);
    github_budget_free(budget);
}

static void without_the_store_a_process_takes_its_part_over_all_threads(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { .away = true };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *one = purses_new(budget, take, &shared, false);
    struct purses *two = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(one, 10, &refusal) + sent(two, 100, &refusal), 22); /* 112 points */
    assert_non_null(strstr(refusal.reason, "of which 1/8 without Redis"));
    purses_free(two);
    purses_free(one);
    github_budget_free(budget);
}

static void what_was_taken_without_the_store_is_told_when_it_is_back(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { .away = true };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(p, 7, &refusal), 7);
    shared.away = false;
    assert_int_equal(sent(p, 1, &refusal), 1);
    assert_int_equal(shared.last.untold[BUDGET_POINTS_MINUTE], 35);
    sent(p, 20, &refusal); /* asks again */
    assert_int_equal(shared.last.untold[BUDGET_POINTS_MINUTE], 0);
    purses_free(p);
    github_budget_free(budget);
}

static void what_was_taken_of_the_store_counts_in_the_part_when_it_goes(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(p, 100, &refusal), 100);
    shared.away = true;
    assert_in_range(sent(p, 20, &refusal), 0, 9); /* what is left of the slice in hand */
    purses_free(p);
    github_budget_free(budget);
}

static void a_refusal_without_the_store_does_not_outlast_its_absence_for_long(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct shared shared = { .away = true };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    sent(p, 30, &refusal);
    assert_non_null(strstr(refusal.reason, "without Redis"));
    assert_true(purses_held(p, REPO, BUDGET_DISPATCH, false, &refusal));
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 5000, 10000);
    purses_free(p);
    github_budget_free(budget);
}

/* A moment that is over by the time anybody asks. */
static enum err refuse_for_no_time(void *opaque, const struct budget_rules *rules,
                                   const struct budget_ask *ask, struct budget_grant *ret,
                                   struct why *why)
{
    (void)opaque, (void)rules, (void)ask, (void)why;
    *ret = (struct budget_grant){ .bucket = BUDGET_POINTS_MINUTE };
    return OK;
}

static void a_call_that_was_held_back_is_told_so_also_when_room_is_there_again(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    struct github_options options = { .api_url = "http://127.0.0.1:1",
                                      .app_id = "7",
                                      .budget = github_budget_new(&rules),
                                      .store = refuse_for_no_time };
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION, .method = "GET", .repo = REPO, .path = "/repos/org/repo"
    };
    struct github *g;
    struct why why;
    assert_int_equal(github_new(&g, &options, &why), OK);
    enum err err = github_start(g, &request, NULL, NULL, &why);
    assert_int_equal(err, ERR_RETRY);
    struct github_answer answer = github_unsent(g, REPO, err, &why);
    assert_true(answer.limited && answer.ours); /* or it would cost an attempt */
    answer = github_unsent(g, REPO, ERR_REFUSE, &why);
    assert_false(answer.limited);
    github_free(g);
    github_budget_free(options.budget);
}

static void what_github_says_is_left_goes_with_the_next_ask(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_REQUESTS_HOUR] = 5000;
    struct shared shared = { 0 };
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    const struct github_answer answer = { .budget_left = 5,
                                          .budget_limit = 5000,
                                          .budget_reset_ms = clock_mono_ms() + 60000 };
    purses_seen(p, REPO, &answer);
    assert_int_equal(sent(p, 6, &refusal), 5);
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 50000, 60000);
    purses_free(p);
    github_budget_free(budget);
}

static void no_limits_ask_nobody(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(0);
    struct shared shared = { 0 };
    struct github_answer refusal;
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, true);
    assert_int_equal(sent(p, 10000, &refusal), 10000);
    assert_int_equal(shared.asks, 0);
    purses_free(p);
    github_budget_free(budget);
}

static void the_whole_app_can_be_one_account(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(900);
    rules.whole_app = true;
    struct shared shared = { 0 };
    struct github_answer refusal;
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *p = purses_new(budget, take, &shared, false);
    assert_int_equal(sent(p, 180, &refusal), 180);
    assert_string_equal(shared.account, "*");
    assert_false(purses_take(p, STR_LIT("other/repo"), "POST", "/repos/other/repo/dispatches",
                             false, &refusal));
    assert_non_null(strstr(refusal.reason, "for the App"));
    purses_free(p);
    github_budget_free(budget);
}

/* ---- what is told ---- */

static const struct metric_family families[] = {
    { "github", METRIC_GAUGE, "", { "tier" } },
    { "left", METRIC_GAUGE, "", { "class", "bucket" } },
    { "waits", METRIC_COUNTER, "", { "class", "bucket" } },
    { "slices", METRIC_COUNTER, "", { "from" } },
};
static const struct budget_families indexes = { 0, 1, 2, 3 };

static double told(struct purses *p, size_t family, const struct str *labels)
{
    struct metrics *m = metrics_new(families, 4);
    purses_tell(p, m, &indexes, STR_LIT("L1"));
    double value = metrics_value(m, family, labels);
    metrics_free(m);
    return value;
}

static void what_is_left_is_told_of_the_account_with_least_whoever_asked_last(void **state)
{
    (void)state;
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_REQUESTS_HOUR] = 800; /* 100 a process */
    struct github_answer refusal = { 0 };
    struct github_budget *budget = github_budget_new(&rules);
    struct purses *one = purses_new(budget, NULL, NULL, false);
    struct purses *two = purses_new(budget, NULL, NULL, false);
    assert_int_equal(sent(one, 70, &refusal), 70);
    assert_true(
        purses_take(two, STR_LIT("other/repo"), "GET", "/repos/other/repo", false, &refusal));
    const struct str *labels = METRIC_LABELS(STR_LIT("high"), STR_LIT("requests_hour"));
    assert_int_equal(told(two, indexes.left, labels), 30);
    assert_int_equal(told(one, indexes.left, labels), 30);
    purses_free(two);
    purses_free(one);
    github_budget_free(budget);
}

static void what_is_left_is_all_again_when_nobody_asked_for_longer_than_the_window(void **state)
{
    (void)state;
    enum { NOW = 1000000, HOUR = 3600000 };
    struct budget_rules rules = rules_of(900);
    rules.limit[BUDGET_REQUESTS_HOUR] = 5000;
    struct github_budget *b = github_budget_new(&rules);
    const struct budget_ask ask = { .low = true };
    const struct budget_grant grant = { .left = { 7, 5, -1, -1 } };
    assert_int_equal(budget_least_left(b, BUDGET_LOW, BUDGET_REQUESTS_HOUR, NOW), -1);
    budget_took(b, "org", NOW, &ask, &grant);
    assert_int_equal(budget_least_left(b, BUDGET_LOW, BUDGET_REQUESTS_HOUR, NOW + HOUR), 7);
    assert_int_equal(budget_least_left(b, BUDGET_LOW, BUDGET_POINTS_MINUTE, NOW + HOUR), 720);
    assert_int_equal(budget_least_left(b, BUDGET_LOW, BUDGET_REQUESTS_HOUR, NOW + 2 * HOUR), 4000);
    assert_int_equal(budget_least_left(b, BUDGET_LOW, BUDGET_CONTENT_HOUR, NOW), -1);
    assert_int_equal(budget_least_left(b, BUDGET_HIGH, BUDGET_REQUESTS_HOUR, NOW), -1);
    github_budget_free(b);
}

static void github_said(struct purses *p, struct str repo, int64_t left, int64_t for_ms)
{
    const struct github_answer answer = { .budget_left = left,
                                          .budget_limit = 5000,
                                          .budget_reset_ms = clock_mono_ms() + for_ms };
    purses_seen(p, repo, &answer);
}

static void githubs_number_is_of_the_installation_with_least_until_its_hour_is_over(void **state)
{
    (void)state;
    static const struct {
        int64_t left, for_ms;
        double told;
    } cases[] = { { 42, 60000, 42 }, { 42, -1, 4000 } };
    const struct str *labels = METRIC_LABELS(STR_LIT("L1"));
    struct budget_rules rules = rules_of(0);
    rules.whole_app = true; /* our own budget makes no difference, nor that there is none */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct github_budget *budget = i ? NULL : github_budget_new(&rules);
        struct purses *p = purses_new(budget, NULL, NULL, false);
        github_said(p, REPO, cases[i].left, cases[i].for_ms);
        github_said(p, STR_LIT("other/repo"), 4000, 60000);
        assert_int_equal(told(p, indexes.github, labels), cases[i].told);
        purses_free(p);
        github_budget_free(budget);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_grow_so_that_a_call_usually_asks_nobody),
        cmocka_unit_test(two_threads_do_not_pass_the_limit_together),
        cmocka_unit_test(a_refusal_names_the_budget_and_spends_nothing),
        cmocka_unit_test(a_limit_of_github_s_is_told_to_all),
        cmocka_unit_test(a_limit_of_github_s_lasts_no_longer_for_a_queue_of_ours),
        cmocka_unit_test(what_costs_another_part_goes_on),
        cmocka_unit_test(those_who_wait_are_told_different_moments_without_asking),
        cmocka_unit_test(the_higher_class_goes_when_the_lower_one_has_used_its_share),
        cmocka_unit_test(without_the_store_a_process_takes_its_part_over_all_threads),
        cmocka_unit_test(what_was_taken_without_the_store_is_told_when_it_is_back),
        cmocka_unit_test(what_was_taken_of_the_store_counts_in_the_part_when_it_goes),
        cmocka_unit_test(a_refusal_without_the_store_does_not_outlast_its_absence_for_long),
        cmocka_unit_test(a_call_that_was_held_back_is_told_so_also_when_room_is_there_again),
        cmocka_unit_test(what_github_says_is_left_goes_with_the_next_ask),
        cmocka_unit_test(no_limits_ask_nobody),
        cmocka_unit_test(the_whole_app_can_be_one_account),
        cmocka_unit_test(what_is_left_is_told_of_the_account_with_least_whoever_asked_last),
        cmocka_unit_test(what_is_left_is_all_again_when_nobody_asked_for_longer_than_the_window),
        cmocka_unit_test(githubs_number_is_of_the_installation_with_least_until_its_hour_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* GitHub's limits: no window, wherever it begins, may hold more than the limit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/budget.h"

#define MINUTE 60000
#define CALLS  4000

static const struct budget_rules github = {
    .limit = { 5000, 900, 80, 500 },
    .minute_ms = MINUTE,
    .kept_percent = 20,
    .replicas = 8,
    .content = { [BUDGET_CHECK_RUN] = true, [BUDGET_COMMENT] = true },
};

static struct budget_ask ask_of(const struct budget_rules *rules, enum budget_call call, int calls,
                                bool low)
{
    return (struct budget_ask){
        .account = STR_LIT("org"),
        .low = low,
        .calls = calls,
        .cost = budget_cost_of(rules, call),
        .seen_left = -1,
    };
}

static int taken_at(struct budget_windows *w, const struct budget_rules *rules,
                    enum budget_call call, int calls, bool low, int64_t now_ms,
                    struct budget_grant *grant)
{
    struct budget_ask ask = ask_of(rules, call, calls, low);
    budget_windows_ask(w, rules, &ask, false, now_ms, grant);
    return grant->calls;
}

static void calls_are_told_apart_by_method_and_path(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path;
        enum budget_call call;
    } table[] = {
        { "POST", "/repos/o/r/dispatches", BUDGET_DISPATCH },
        { "POST", "/repos/o/r/check-runs", BUDGET_CHECK_RUN },
        { "PATCH", "/repos/o/r/check-runs/7", BUDGET_WRITE },
        { "POST", "/repos/o/r/issues/7/comments", BUDGET_COMMENT },
        { "PATCH", "/repos/o/r/issues/comments/7", BUDGET_WRITE },
        { "POST", "/repos/o/r/actions/runs/7/rerun-failed-jobs", BUDGET_WRITE },
        { "GET", "/repos/o/r/commits/a/check-runs?check_name=x", BUDGET_READ },
        { "GET", "/repos/o/r/issues/7/comments", BUDGET_READ },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(budget_call_of(table[i].method, table[i].path), table[i].call);
}

static void a_read_costs_one_point_a_write_five_and_a_creation_one_content(void **state)
{
    (void)state;
    static const struct {
        enum budget_call call;
        int cost[BUDGET_BUCKETS];
    } table[] = {
        { BUDGET_READ, { 1, 1, 0, 0 } },
        { BUDGET_WRITE, { 1, 5, 0, 0 } },
        { BUDGET_DISPATCH, { 1, 5, 0, 0 } },
        { BUDGET_CHECK_RUN, { 1, 5, 1, 1 } },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct budget_cost cost = budget_cost_of(&github, table[i].call);
        assert_memory_equal(cost.of, table[i].cost, sizeof(cost.of));
    }
}

static void what_is_content_is_configured(void **state)
{
    (void)state;
    struct budget_rules rules = github;
    assert_true(budget_content_parse(&rules, STR_LIT("dispatch, comment")));
    assert_true(rules.content[BUDGET_DISPATCH] && rules.content[BUDGET_COMMENT]);
    assert_false(rules.content[BUDGET_CHECK_RUN]);
    assert_true(budget_content_parse(&rules, STR_LIT("none")));
    assert_false(rules.content[BUDGET_DISPATCH]);
    assert_false(budget_content_parse(&rules, STR_LIT("dispatch,everything")));
}

/* Takes whatever is granted at random moments for some minutes; then looks at every window. A call
 * may reach GitHub at any moment of its life. */
static void no_window_holds_more_than_the_limit(void **state)
{
    (void)state;
    static int64_t at[CALLS];
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    size_t n = 0;
    srand(7);
    for (int64_t now = 1000000; now < 1000000 + 15 * MINUTE; now += rand() % 400) {
        int calls = taken_at(&w, &github, BUDGET_WRITE, 1 + rand() % 9, false, now, &grant);
        for (int i = 0; i < calls && n < CALLS; i++)
            at[n++] = now + (rand() % 3 ? rand() % 200 : rand() % BUDGET_LIFE_MS);
    }
    assert_true(n < CALLS);
    for (size_t i = 0; i < n; i++) {
        int points = 0;
        for (size_t k = 0; k < n; k++)
            points += at[k] >= at[i] && at[k] < at[i] + MINUTE ? 5 : 0;
        assert_in_range(points, 5, 900);
    }
    /* And it is used: 15 windows with their life and a slot have at least 13 in them. */
    assert_true(n >= 13 * 180);
}

static void an_hour_is_a_window_too(void **state)
{
    (void)state;
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    int64_t now = 5000000;
    int n = 0;
    for (int i = 0; i < 59; i++, now += MINUTE)
        n += taken_at(&w, &github, BUDGET_CHECK_RUN, 32, false, now, &grant);
    assert_int_equal(n, 500);
    assert_int_equal(grant.bucket, BUDGET_CONTENT_HOUR);
    assert_in_range(grant.wait_ms, MINUTE, 8 * MINUTE);
    assert_int_equal(taken_at(&w, &github, BUDGET_WRITE, 1, false, now, &grant), 1);
}

static void all_buckets_are_taken_from_or_none(void **state)
{
    (void)state;
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 100, false, 9000000, &grant), 80);
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 1, false, 9000001, &grant), 0);
    assert_int_equal(grant.bucket, BUDGET_CONTENT_MINUTE);
    assert_int_equal(budget_windows_taken(&w, &github, BUDGET_POINTS_MINUTE, 9000002), 400);
    assert_int_equal(budget_windows_taken(&w, &github, BUDGET_REQUESTS_HOUR, 9000002), 80);
}

static void the_told_wait_is_enough_and_not_too_long(void **state)
{
    (void)state;
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    int64_t now = 123456789;
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 80, false, now, &grant), 80);
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 1, false, now + 10, &grant), 0);
    assert_in_range(grant.wait_ms, MINUTE, MINUTE + BUDGET_LIFE_MS + 2 * MINUTE / BUDGET_SLOTS);
    int64_t due = now + 10 + grant.wait_ms;
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 1, false, due - 1, &grant), 0);
    assert_int_equal(taken_at(&w, &github, BUDGET_CHECK_RUN, 1, false, due, &grant), 1);
}

static void the_lower_class_leaves_what_is_kept(void **state)
{
    (void)state;
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    int64_t now = 7000000;
    assert_int_equal(taken_at(&w, &github, BUDGET_WRITE, 1000, true, now, &grant), 144); /* 80 % */
    assert_int_equal(taken_at(&w, &github, BUDGET_WRITE, 1, true, now, &grant), 0);
    assert_int_equal(taken_at(&w, &github, BUDGET_WRITE, 1000, false, now, &grant), 36);
    assert_int_equal(taken_at(&w, &github, BUDGET_WRITE, 1, false, now, &grant), 0);
}

static void a_limit_of_0_is_none(void **state)
{
    (void)state;
    struct budget_rules rules = { .minute_ms = MINUTE, .replicas = 1 };
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    assert_false(budget_limits(&rules));
    rules.limit[BUDGET_CONTENT_MINUTE] = 1;
    assert_true(budget_limits(&rules));
    assert_int_equal(taken_at(&w, &rules, BUDGET_WRITE, 100000, true, 1000, &grant), 100000);
    assert_int_equal(grant.left[BUDGET_POINTS_MINUTE], -1);
}

static void a_replica_has_its_part_and_never_less_than_a_call(void **state)
{
    (void)state;
    struct budget_windows w = { 0 }, tiny = { 0 };
    struct budget_rules rules = github;
    struct budget_grant grant;
    struct budget_ask ask = ask_of(&github, BUDGET_CHECK_RUN, 100, false);
    budget_windows_ask(&w, &github, &ask, true, 1000000, &grant);
    assert_int_equal(grant.calls, 10);
    rules.limit[BUDGET_POINTS_MINUTE] = 4; /* less than a write costs: one at a time all the same */
    ask.calls = 1;
    budget_windows_ask(&tiny, &rules, &ask, true, 1000000, &grant);
    assert_int_equal(grant.calls, 1);
    budget_windows_ask(&tiny, &rules, &ask, true, 1000000, &grant);
    assert_int_equal(grant.calls, 0);
}

/* Downwards within one of GitHub's hours, anew with the next. */
static void what_github_says_is_left_corrects_downwards(void **state)
{
    (void)state;
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    struct budget_ask ask = ask_of(&github, BUDGET_READ, 100, false);
    ask.seen_left = 3;
    ask.seen_reset_ms = 40000;
    budget_windows_ask(&w, &github, &ask, false, 1000000, &grant);
    assert_int_equal(grant.calls, 3);
    ask.seen_left = 4999; /* an older answer */
    ask.seen_reset_ms = 39000;
    budget_windows_ask(&w, &github, &ask, false, 1001000, &grant);
    assert_int_equal(grant.calls, 0);
    assert_int_equal(grant.bucket, BUDGET_REQUESTS_HOUR);
    assert_int_equal(grant.wait_ms, 39000);
    ask.seen_left = -1;
    budget_windows_ask(&w, &github, &ask, false, 1040000, &grant);
    assert_int_equal(grant.calls, 100);
}

static void while_github_told_us_to_wait_nothing_is_taken(void **state)
{
    struct budget_windows w = { 0 };
    struct budget_grant grant;
    struct budget_ask ask = ask_of(&github, BUDGET_DISPATCH, 1, false);
    (void)state;
    ask.seen_limited_ms = 5000;
    budget_windows_ask(&w, &github, &ask, false, MINUTE, &grant);
    assert_true(grant.calls == 0 && grant.limited && grant.wait_ms == 5000);
    assert_int_equal(taken_at(&w, &github, BUDGET_READ, 3, true, MINUTE + 4999, &grant), 0);
    assert_true(grant.limited && grant.wait_ms == 1);
    assert_int_equal(taken_at(&w, &github, BUDGET_READ, 3, true, MINUTE + 5000, &grant), 3);
    assert_false(grant.limited);
    assert_int_equal(budget_windows_taken(&w, &github, BUDGET_REQUESTS_HOUR, MINUTE + 5000), 3);
}

static void those_who_wait_come_at_the_rate_of_the_bucket(void **state)
{
    (void)state;
    int64_t pace = budget_pace_ms(&github, BUDGET_POINTS_MINUTE, 900, 5);
    assert_in_range(pace * 180, MINUTE, MINUTE + BUDGET_LIFE_MS + MINUTE / BUDGET_SLOTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_told_apart_by_method_and_path),
        cmocka_unit_test(a_read_costs_one_point_a_write_five_and_a_creation_one_content),
        cmocka_unit_test(what_is_content_is_configured),
        cmocka_unit_test(no_window_holds_more_than_the_limit),
        cmocka_unit_test(an_hour_is_a_window_too),
        cmocka_unit_test(all_buckets_are_taken_from_or_none),
        cmocka_unit_test(the_told_wait_is_enough_and_not_too_long),
        cmocka_unit_test(the_lower_class_leaves_what_is_kept),
        cmocka_unit_test(a_limit_of_0_is_none),
        cmocka_unit_test(a_replica_has_its_part_and_never_less_than_a_call),
        cmocka_unit_test(what_github_says_is_left_corrects_downwards),
        cmocka_unit_test(while_github_told_us_to_wait_nothing_is_taken),
        cmocka_unit_test(those_who_wait_come_at_the_rate_of_the_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

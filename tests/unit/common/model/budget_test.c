/* GitHub's limits: no window, wherever it begins, may hold more than the limit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/budget.h"

#define SECOND 1000000LL
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define START  (1000 * HOUR)
#define CALLS  20000

static const struct budget_rules github = {
    .limit = { 5000, 900, 80, 500 },
    .replicas = 8,
    .content = { [BUDGET_CHECK_RUN] = true, [BUDGET_COMMENT] = true },
};

static bool took(struct budget_state *s, const struct budget_rules *rules, enum budget_call call,
                 enum budget_class class, int64_t now, struct budget_answer *answer)
{
    struct budget_ask ask;
    budget_price(rules, call, class, -1, 0, &ask);
    budget_take(s, &ask, now, answer);
    return answer->wait_us == 0;
}

/* As many as there are at once. */
static int all(struct budget_state *s, const struct budget_rules *rules, enum budget_call call,
               enum budget_class class, int64_t now)
{
    struct budget_answer answer;
    int n = 0;
    while (n < CALLS && took(s, rules, call, class, now, &answer))
        n++;
    return n;
}

static void calls_are_distinguished_by_method_and_path(void **state)
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
    static const int capacity[BUDGET_BUCKETS] = { 1250, 225, 20, 125 };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct budget_ask ask;
        budget_price(&github, table[i].call, BUDGET_AGGREGATE, -1, 0, &ask);
        for (int b = 0; b < BUDGET_BUCKETS; b++)
            assert_int_equal(ask.of[b].cost_us * capacity[b], ask.of[b].full_us * table[i].cost[b]);
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

/* Takes what it can at random moments, with pauses in which the buckets fill; a call reaches GitHub
 * within two seconds. Then every window that begins with a call is looked at. Gives the calls. */
static size_t fullest(const struct budget_rules *rules, enum budget_call call, int64_t window,
                      int64_t length, int64_t step, size_t *most)
{
    static int64_t at[CALLS];
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    size_t n = 0;
    *most = 0;
    for (int64_t now = START; now < START + length; now += 1 + rand() % step) {
        for (int i = rand() % 40; i > 0 && n < CALLS; i--)
            if (took(&s, rules, call, (enum budget_class)(rand() % BUDGET_CLASSES), now, &answer))
                at[n++] = now + (rand() % 3 ? rand() % (SECOND / 5) : rand() % (2 * SECOND));
        if (rand() % 500 == 0)
            now += window / (1 + rand() % 4);
    }
    assert_true(n < CALLS);
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        for (size_t k = 0; k < n; k++)
            count += at[k] >= at[i] && at[k] < at[i] + window;
        if (count > *most)
            *most = count;
    }
    return n;
}

static void no_window_holds_more_than_the_limit(void **state)
{
    (void)state;
    size_t most;
    srand(7);
    size_t n = fullest(&github, BUDGET_WRITE, MINUTE, 30 * MINUTE, SECOND / 2, &most);
    assert_in_range(most, 160, 180); /* 900 points */
    assert_in_range(n, 20 * 100, 30 * 180);
    n = fullest(&github, BUDGET_CHECK_RUN, MINUTE, 20 * MINUTE, SECOND, &most);
    assert_in_range(most, 70, 80);
    (void)fullest(&github, BUDGET_CHECK_RUN, HOUR, 6 * HOUR, 20 * SECOND, &most);
    assert_in_range(most, 450, 500);
}

static void a_class_that_is_alone_has_all_the_refill(void **state)
{
    (void)state;
    struct budget_rules points = { .limit = { [BUDGET_POINTS_MINUTE] = 900 } };
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    int n = 0;
    for (int64_t now = START; now < START + 10 * MINUTE; now += SECOND / 10)
        n += took(&s, &points, BUDGET_DISPATCH, BUDGET_REST, now, &answer);
    assert_in_range(n, 10 * 675 / 5 * 60 / 64, 10 * 675 / 5 + 23);
}

static void all_buckets_are_taken_from_or_none(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    assert_int_equal(all(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START), 20);
    assert_false(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START, &answer));
    assert_int_equal(answer.bucket, BUDGET_CONTENT_MINUTE);
    assert_int_equal(all(&s, &github, BUDGET_WRITE, BUDGET_AGGREGATE, START), 45 - 20);
    assert_int_equal(all(&s, &github, BUDGET_READ, BUDGET_AGGREGATE, START), 0);
}

static void the_wait_is_enough_and_not_too_long(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    assert_int_equal(all(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START), 20);
    assert_false(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START + 10, &answer));
    assert_in_range(answer.wait_us, SECOND, 64 * SECOND / 60 + 1);
    int64_t due = START + 10 + answer.wait_us;
    assert_false(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, due - 1, &answer));
    assert_true(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, due, &answer));
}

static void each_class_leaves_a_part_to_those_above_it(void **state)
{
    (void)state;
    static const int dispatches[BUDGET_CLASSES] = { 4, 7, 11, 22 }; /* of 45 */
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    for (int c = BUDGET_REST; c >= 0; c--) {
        int n = all(&s, &github, BUDGET_DISPATCH, (enum budget_class)c, START);
        assert_in_range(n, dispatches[c], dispatches[c] + 1);
        assert_false(took(&s, &github, BUDGET_DISPATCH, BUDGET_REST, START, &answer));
    }
    /* What comes back is for the highest that asks. */
    for (int64_t now = START; now < START + 20 * SECOND; now += 4 * SECOND) {
        assert_false(took(&s, &github, BUDGET_DISPATCH, BUDGET_REST, now, &answer));
        all(&s, &github, BUDGET_DISPATCH, BUDGET_AGGREGATE, now);
    }
}

static void a_limit_of_0_is_none(void **state)
{
    (void)state;
    struct budget_rules rules = { .replicas = 1 };
    struct budget_state s = { { 0 }, 0 };
    assert_false(budget_limits(&rules));
    rules.limit[BUDGET_CONTENT_MINUTE] = 1;
    assert_true(budget_limits(&rules));
    assert_int_equal(all(&s, &rules, BUDGET_WRITE, BUDGET_REST, START), CALLS);
    assert_int_equal(budget_left(&rules, BUDGET_POINTS_MINUTE, BUDGET_REST, 0), -1);
}

static void a_process_alone_has_its_part_from_the_level_that_all_had(void **state)
{
    (void)state;
    struct budget_rules alone = budget_rules_alone(&github);
    struct budget_state s = { { 0 }, 0 }, used = { { 0 }, 0 };
    assert_int_equal(all(&s, &alone, BUDGET_WRITE, BUDGET_AGGREGATE, START), 28 / 5);
    for (int i = 0; i < 40; i++)
        assert_true(took(&used, &github, BUDGET_WRITE, BUDGET_AGGREGATE, START,
                         &(struct budget_answer){ 0 })); /* 25 of 225 points are left: 3 of 28 */
    assert_int_equal(all(&used, &alone, BUDGET_WRITE, BUDGET_AGGREGATE, START), 0);
    assert_int_equal(all(&used, &alone, BUDGET_READ, BUDGET_AGGREGATE, START), 3);
}

static void a_limit_below_a_call_s_cost_lets_one_through_at_a_time(void **state)
{
    (void)state;
    for (int64_t limit = 1; limit < 20; limit++) {
        struct budget_rules rules = { .limit = { [BUDGET_POINTS_MINUTE] = limit }, .replicas = 8 };
        struct budget_state s = { { 0 }, 0 };
        struct budget_answer answer;
        assert_int_equal(all(&s, &rules, BUDGET_WRITE, BUDGET_REST, START), 1);
        assert_false(took(&s, &rules, BUDGET_WRITE, BUDGET_REST, START, &answer));
        assert_true(took(&s, &rules, BUDGET_WRITE, BUDGET_REST, START + answer.wait_us, &answer));
        rules = budget_rules_alone(&rules);
        assert_int_equal(
            all(&(struct budget_state){ { 0 }, 0 }, &rules, BUDGET_WRITE, BUDGET_REST, START), 1);
    }
}

static void what_github_says_is_left_corrects_downwards(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    struct budget_ask ask;
    budget_price(&github, BUDGET_READ, BUDGET_AGGREGATE, 3, HOUR, &ask);
    budget_take(&s, &ask, START, &answer);
    assert_int_equal(answer.wait_us, 0);
    assert_int_equal(all(&s, &github, BUDGET_READ, BUDGET_AGGREGATE, START), 2);
    budget_price(&github, BUDGET_READ, BUDGET_AGGREGATE, 4999, HOUR, &ask); /* an older answer */
    budget_take(&s, &ask, START, &answer);
    assert_true(answer.wait_us > 0 && answer.bucket == BUDGET_REQUESTS_HOUR);
}

static void what_github_says_is_left_is_forgotten_when_its_hour_is_over(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    struct budget_ask ask;
    budget_price(&github, BUDGET_READ, BUDGET_AGGREGATE, 0, 20 * SECOND, &ask);
    budget_take(&s, &ask, START, &answer);
    int64_t used_us = s.full_us[BUDGET_REQUESTS_HOUR] - START;
    assert_in_range(used_us, 20 * SECOND, 21 * SECOND);
}

static void while_github_asked_us_to_wait_nothing_is_taken(void **state)
{
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    struct budget_ask ask;
    (void)state;
    budget_price(&github, BUDGET_DISPATCH, BUDGET_L4, -1, 0, &ask);
    ask.limited_us = 5 * SECOND;
    budget_take(&s, &ask, START, &answer);
    assert_true(answer.limited && answer.wait_us == 5 * SECOND);
    assert_false(took(&s, &github, BUDGET_READ, BUDGET_REST, START + 5 * SECOND - 1, &answer));
    assert_true(answer.limited && answer.wait_us == 1);
    assert_true(took(&s, &github, BUDGET_READ, BUDGET_REST, START + 5 * SECOND, &answer));
    assert_int_equal(all(&s, &github, BUDGET_DISPATCH, BUDGET_AGGREGATE, START + 5 * SECOND), 44);
}

static void a_clock_that_is_set_back_empties_the_buckets_at_worst(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    assert_true(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START, &answer));
    assert_false(took(&s, &github, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, START - 9 * HOUR, &answer));
    assert_in_range(answer.wait_us, SECOND, 10 * SECOND);
}

static void what_is_left_grows_to_what_the_class_may_have(void **state)
{
    (void)state;
    struct budget_state s = { { 0 }, 0 };
    struct budget_answer answer;
    assert_int_equal(budget_left(&github, BUDGET_POINTS_MINUTE, BUDGET_REST, -5), 112);
    assert_true(took(&s, &github, BUDGET_WRITE, BUDGET_REST, START, &answer));
    int64_t used = answer.used_us[BUDGET_POINTS_MINUTE];
    assert_int_equal(budget_left(&github, BUDGET_POINTS_MINUTE, BUDGET_REST, used), 107);
    assert_int_equal(budget_left(&github, BUDGET_POINTS_MINUTE, BUDGET_AGGREGATE, used), 220);
    assert_int_equal(budget_left(&github, BUDGET_POINTS_MINUTE, BUDGET_REST, HOUR), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_distinguished_by_method_and_path),
        cmocka_unit_test(a_read_costs_one_point_a_write_five_and_a_creation_one_content),
        cmocka_unit_test(what_is_content_is_configured),
        cmocka_unit_test(no_window_holds_more_than_the_limit),
        cmocka_unit_test(a_class_that_is_alone_has_all_the_refill),
        cmocka_unit_test(all_buckets_are_taken_from_or_none),
        cmocka_unit_test(the_wait_is_enough_and_not_too_long),
        cmocka_unit_test(each_class_leaves_a_part_to_those_above_it),
        cmocka_unit_test(a_limit_of_0_is_none),
        cmocka_unit_test(a_process_alone_has_its_part_from_the_level_that_all_had),
        cmocka_unit_test(a_limit_below_a_call_s_cost_lets_one_through_at_a_time),
        cmocka_unit_test(what_github_says_is_left_corrects_downwards),
        cmocka_unit_test(what_github_says_is_left_is_forgotten_when_its_hour_is_over),
        cmocka_unit_test(while_github_asked_us_to_wait_nothing_is_taken),
        cmocka_unit_test(a_clock_that_is_set_back_empties_the_buckets_at_worst),
        cmocka_unit_test(what_is_left_grows_to_what_the_class_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

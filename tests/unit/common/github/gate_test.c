/* What a process keeps of the budget: with a real Redis, and without. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/github.h"
#include "common/model/limits.h"
#include "tests/unit/support/redis_fixture.h"

#define REPO STR_LIT("Org/repo")

static struct budget_rules rules_of(int64_t points)
{
    return (struct budget_rules){
        .limit = { [BUDGET_POINTS_MINUTE] = points },
        .replicas = 8,
        .content = { [BUDGET_CHECK_RUN] = true },
    };
}

static struct gate_user payer(void **state, struct gate *b, enum budget_class class)
{
    struct redis_fixture *f = *state;
    return (struct gate_user){ .gate = b, .redis = f->redis, .class = class };
}

static struct gate_user alone(struct gate *b, enum budget_class class)
{
    return (struct gate_user){ .gate = b, .class = class };
}

static bool call(struct gate_user *p, const char *method, const char *path, struct str repo,
                 struct str downstream, enum budget_class class, struct github_answer *refusal)
{
    const struct gate_call call = { .kind = budget_call_of(method, path),
                                    .repo = repo,
                                    .downstream = downstream,
                                    .class = class };
    bool may = gate_enter(p, &call, refusal);
    if (may)
        gate_leave(p, repo);
    return may;
}

static bool holds(struct gate_user *p, struct str downstream, enum budget_call kind,
                  enum budget_class class, struct github_answer *refusal)
{
    const struct gate_call call = { .kind = kind,
                                    .repo = REPO,
                                    .downstream = downstream,
                                    .class = class };
    return gate_holds(p, &call, refusal);
}

static int sent(struct gate_user *p, int calls, struct github_answer *refusal)
{
    int n = 0;
    for (int i = 0; i < calls; i++)
        n += call(p, "POST", "/repos/org/repo/dispatches", REPO, STR_NONE, 0, refusal);
    return n;
}

/* Commands that Redis has run since the last time, this one's own aside. */
static int64_t asks(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_options options = { .endpoint = f->server.endpoint };
    const struct redis_value *v;
    struct redis *plain; /* INFO takes no key */
    assert_int_equal(redis_new(&plain, &options, NULL), OK);
    assert_int_equal(
        redis_call(plain, &v, REDIS_ARGS(STR_LIT("INFO"), STR_LIT("commandstats")), NULL), OK);
    ptrdiff_t at = str_find_str(v->text, STR_LIT("cmdstat_evalsha:calls="));
    int64_t n = 0;
    for (ptrdiff_t i = at + 22; at >= 0 && v->text.ptr[i] >= '0' && v->text.ptr[i] <= '9'; i++)
        n = 10 * n + v->text.ptr[i] - '0';
    redis_free(plain);
    return n;
}

static void threads_and_replicas_take_of_one_budget(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules), *replica = gate_new(&rules);
    struct gate_user one = payer(state, b, BUDGET_AGGREGATE);
    struct gate_user two = payer(state, b, BUDGET_AGGREGATE);
    struct gate_user three = payer(state, replica, BUDGET_AGGREGATE);
    int n = 0;
    for (int i = 0; i < 30; i++)
        n += sent(&one, 1, &refusal) + sent(&two, 1, &refusal) + sent(&three, 1, &refusal);
    assert_in_range(n, 45, 46); /* 225 points */
    gate_free(replica);
    gate_free(b);
}

static void a_refusal_names_the_budget_and_spends_nothing(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_REST);
    assert_int_equal(sent(&p, 23, &refusal), 22);
    assert_int_equal(refusal.err, ERR_RETRY);
    assert_true(refusal.because == GATE_BUDGET);
    assert_true(refusal.sent_ms == 0 && refusal.status == 0);
    assert_non_null(strstr(refusal.reason, "our own budget of 900 points a minute for org is used "
                                           "up for class rest until 20"));
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 1, 500);
    assert_true(call(&p, "GET", "/repos/other/repo", STR_LIT("other/repo"), STR_NONE, 0, &refusal));
    gate_free(b);
}

static void a_refusal_is_remembered_until_its_moment_and_asks_nobody(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer first = { 0 }, later = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    while (sent(&p, 1, &first))
        ;
    int64_t before = asks(state);
    assert_int_equal(sent(&p, 300, &later), 0);
    assert_int_equal(asks(state), before);
    /* Each has a moment of its own: as many in a minute as there is refill. */
    assert_in_range(later.wait_until_ms - first.wait_until_ms, 300 * 450, 300 * 485);
    assert_true(holds(&p, REPO, BUDGET_DISPATCH, BUDGET_AGGREGATE, &later));
    int64_t wait_ms = later.wait_until_ms - clock_mono_ms();
    assert_in_range(wait_ms, 1, 485);
    usleep((useconds_t)wait_ms * 1000 + 1000);
    assert_false(holds(&p, REPO, BUDGET_DISPATCH, BUDGET_AGGREGATE, &later));
    assert_int_equal(sent(&p, 1, &first), 1);
    gate_free(b);
}

static void a_class_does_not_wait_for_one_below_it(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user rest = payer(state, b, BUDGET_REST), four = payer(state, b, BUDGET_L4);
    assert_int_equal(sent(&rest, 200, &refusal), 22);
    assert_true(holds(&rest, REPO, BUDGET_DISPATCH, BUDGET_AGGREGATE, &refusal));
    assert_in_range(sent(&four, 40, &refusal), 18, 19);
    assert_false(call(&four, "POST", "/x/dispatches", REPO, STR_NONE, BUDGET_URGENT, &refusal));
    gate_free(b);
}

static void what_costs_another_part_goes_on(void **state)
{
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_CONTENT_MINUTE] = 40;
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    int made = 0;
    while (call(&p, "POST", "/repos/org/repo/check-runs", REPO, STR_NONE, BUDGET_REST, &refusal))
        made++;
    assert_in_range(made, 2, 3);
    assert_true(holds(&p, REPO, BUDGET_CHECK_RUN, BUDGET_REST, &refusal));
    assert_true(refusal.because == GATE_BUDGET);
    assert_false(holds(&p, REPO, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, &refusal));
    assert_false(holds(&p, REPO, BUDGET_WRITE, BUDGET_REST, &refusal));
    assert_true(
        call(&p, "PATCH", "/repos/org/repo/check-runs/7", REPO, STR_NONE, BUDGET_REST, &refusal));
    gate_free(b);
}

static void one_downstream_over_its_share_holds_up_no_other(void **state)
{
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_CONTENT_HOUR] = 500;
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    struct str flood = STR_LIT("a/flood"), other = STR_LIT("b/other");
    int made = 0;
    while (call(&p, "POST", "/repos/org/repo/check-runs", REPO, flood, BUDGET_REST, &refusal))
        made++;
    assert_in_range(made, 31, 32);
    assert_true(holds(&p, flood, BUDGET_CHECK_RUN, BUDGET_REST, &refusal));
    assert_false(holds(&p, other, BUDGET_CHECK_RUN, BUDGET_REST, &refusal));
    assert_true(call(&p, "POST", "/repos/org/repo/check-runs", REPO, other, BUDGET_REST, &refusal));
    gate_free(b);
}

/* Without Redis the threads of one process share it all the same. */
static void a_limit_of_github_s_holds_for_all(void **state)
{
    struct budget_rules rules = rules_of(900);
    for (int redis = 0; redis < 2; redis++) {
        struct github_answer refusal = { 0 };
        struct gate *b = gate_new(&rules), *c = gate_new(&rules);
        struct gate_user one = redis ? payer(state, b, 0) : alone(b, 0);
        struct gate_user two = redis ? payer(state, c, 0) : alone(b, 0);
        int64_t until_ms = clock_mono_ms() + 30000, before = asks(state);
        struct github_answer limit = { .because = GATE_RATE_LIMIT,
                                       .wait_until_ms = until_ms,
                                       .budget_left = -1 };
        gate_answered(&one, REPO, &limit);
        gate_answered(&one, REPO, &limit); /* of a call that was under way as well */
        assert_int_equal(asks(state) - before, redis);
        assert_int_equal(sent(&two, 1, &refusal), 0);
        assert_true(refusal.because == GATE_RATE_LIMIT && refusal.sent_ms == 0);
        assert_in_range(refusal.wait_until_ms, until_ms - 100, until_ms + 1000);
        assert_non_null(strstr(refusal.reason, "GitHub asked us to wait for org until 20"));
        assert_true(
            call(&two, "GET", "/repos/other/repo", STR_LIT("other/repo"), STR_NONE, 0, &refusal));
        gate_free(c);
        gate_free(b);
    }
}

/* Ours get a place in a queue, which says nothing of when GitHub takes calls again. */
static void a_limit_of_github_s_lasts_no_longer_for_a_queue_of_ours(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules), *c = gate_new(&rules);
    struct gate_user ours = payer(state, b, BUDGET_AGGREGATE);
    struct gate_user other = payer(state, c, BUDGET_REST);
    (void)sent(&ours, 100, &refusal);
    int64_t until_ms = clock_mono_ms() + 10000;
    assert_true(refusal.because == GATE_BUDGET && refusal.wait_until_ms > until_ms + 10000);
    struct github_answer limit = { .because = GATE_RATE_LIMIT,
                                   .wait_until_ms = until_ms,
                                   .budget_left = -1 };
    gate_answered(&other, REPO, &limit);
    do
        (void)sent(&ours, 1, &refusal);
    while (refusal.because == GATE_BUDGET && clock_mono_ms() < until_ms - 1000);
    assert_true(refusal.because == GATE_RATE_LIMIT);
    assert_in_range(refusal.wait_until_ms, until_ms - 100, until_ms + 100);
    gate_free(c);
    gate_free(b);
}

static void what_github_says_is_left_goes_with_the_next_call(void **state)
{
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_REQUESTS_HOUR] = 5000;
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    struct github_answer answer = { .budget_left = 5,
                                    .budget_reset_ms = clock_mono_ms() + 3600000 };
    gate_answered(&p, REPO, &answer);
    assert_int_equal(sent(&p, 6, &refusal), 5);
    assert_true(refusal.because == GATE_BUDGET);
    struct github_answer none = { .budget_left = 0, .budget_reset_ms = clock_mono_ms() + 60000 };
    struct gate_user other = payer(state, b, BUDGET_AGGREGATE);
    gate_answered(&p, STR_LIT("other/repo"), &none);
    assert_false(call(&other, "GET", "/repos/other/b", STR_LIT("other/b"), STR_NONE, 0, &refusal));
    assert_true(refusal.because == GATE_RATE_LIMIT); /* nothing before GitHub's hour is over */
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 59000, 60000);
    gate_free(b);
}

/* A limit of ours that is higher would keep more for others than GitHub gives at all. */
static void the_limit_of_requests_is_the_lower_of_ours_and_githubs(void **state)
{
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_REQUESTS_HOUR] = 1000000;
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_REST);
    struct github_answer answer = { .budget_left = 99,
                                    .budget_limit = 100,
                                    .budget_reset_ms = clock_mono_ms() + 60000 };
    gate_answered(&p, REPO, &answer);
    assert_int_equal(sent(&p, 100, &refusal), 12);
    assert_non_null(strstr(refusal.reason, "100 requests an hour"));
    assert_true(call(&p, "GET", "/repos/other/a", STR_LIT("other/a"), STR_NONE, 0, &refusal));
    gate_free(b);
}

static void without_redis_a_process_takes_its_part_over_all_threads(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user one = alone(b, BUDGET_AGGREGATE), two = alone(b, BUDGET_AGGREGATE);
    (void)state;
    assert_int_equal(sent(&one, 2, &refusal) + sent(&two, 100, &refusal), 5); /* 28 points */
    assert_non_null(strstr(refusal.reason, "112 points a minute without Redis for org"));
    gate_free(b);
}

static void when_redis_goes_the_level_that_it_told_is_where_a_process_begins(void **state)
{
    struct redis_options options = { .endpoint = "127.0.0.1:1" };
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    while (sent(&p, 1, &refusal))
        ;
    struct gate_user other = alone(b, BUDGET_L4); /* a class that has no refusal yet */
    assert_int_equal(redis_new(&other.redis, &options, NULL), OK);
    assert_int_equal(sent(&other, 1, &refusal), 0);
    assert_non_null(strstr(refusal.reason, "without Redis"));
    redis_free(other.redis);
    gate_free(b);
}

static void a_refusal_without_redis_is_looked_at_again_after_10_s(void **state)
{
    struct budget_rules rules = rules_of(0);
    rules.limit[BUDGET_CONTENT_HOUR] = 500;
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = alone(b, BUDGET_AGGREGATE);
    (void)state;
    while (call(&p, "POST", "/repos/org/repo/check-runs", REPO, STR_NONE, 0, &refusal))
        ;
    assert_true(holds(&p, REPO, BUDGET_CHECK_RUN, BUDGET_AGGREGATE, &refusal));
    assert_in_range(refusal.wait_until_ms - clock_mono_ms(), 9000, 10000);
    gate_free(b);
}

static void a_call_that_was_held_back_is_told_so_also_when_room_is_there_again(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_options options = { .api_url = "http://127.0.0.1:1",
                                      .app_id = "7",
                                      .gate = gate_new(&rules) };
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION, .method = "POST", .repo = REPO, .path = "/repos/org/repo"
    };
    struct gate_user p = alone(options.gate, BUDGET_AGGREGATE);
    struct github_answer refusal;
    struct github *g;
    struct why why;
    (void)state;
    while (sent(&p, 1, &refusal))
        ;
    assert_int_equal(github_new(&g, &options, &why), OK);
    enum err err = github_start(g, &request, NULL, NULL, &why);
    assert_int_equal(err, ERR_RETRY);
    struct github_answer answer = github_unsent(g, err, &why);
    assert_true(answer.because == GATE_BUDGET); /* or it would cost an attempt */
    answer = github_unsent(g, ERR_REFUSE, &why);
    assert_false(answer.because);
    github_free(g);
    gate_free(options.gate);
}

static void no_limits_ask_nobody(void **state)
{
    struct budget_rules rules = rules_of(0);
    struct github_answer refusal;
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_REST);
    int64_t before = asks(state);
    assert_int_equal(sent(&p, 10000, &refusal), 10000);
    assert_int_equal(asks(state), before);
    gate_free(b);
}

static void the_whole_app_can_be_one_account(void **state)
{
    struct budget_rules rules = rules_of(900);
    rules.one_for_the_app = true;
    struct github_answer refusal;
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_AGGREGATE);
    struct github_answer limit = { .because = GATE_RATE_LIMIT,
                                   .wait_until_ms = clock_mono_ms() + 30000 };
    gate_answered(&p, STR_LIT("third/repo"), &limit); /* says nothing of the others */
    assert_in_range(sent(&p, 60, &refusal), 45, 46);
    assert_false(call(&p, "POST", "/repos/other/repo/dispatches", STR_LIT("other/repo"), STR_NONE,
                      0, &refusal));
    assert_true(refusal.because == GATE_BUDGET);
    assert_non_null(strstr(refusal.reason, "for the App"));
    gate_free(b);
}

/* ---- metrics ---- */

static const struct metric_family families[] = {
    { "github", METRIC_GAUGE, "", { "tier" } },
    { "left", METRIC_GAUGE, "", { "class", "bucket" } },
    { "waits", METRIC_COUNTER, "", { "class", "bucket" } },
};
static const struct budget_families indexes = { 0, 1, 2 };

static double reported(struct gate_user *p, size_t family, const char *class)
{
    struct metrics *m = metrics_new(families, 3);
    gate_report(p, m, &indexes, STR_LIT("L1"));
    double value = metrics_value(m, family, METRIC_LABELS(str_of(class), STR_LIT("points_minute")));
    metrics_free(m);
    return value;
}

static void what_is_left_is_of_the_account_with_least_whoever_asked_last(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user one = payer(state, b, 0), two = payer(state, b, 0);
    assert_int_equal(sent(&one, 10, &refusal), 10);
    assert_true(
        call(&two, "GET", "/repos/other/repo", STR_LIT("other/repo"), STR_NONE, 0, &refusal));
    assert_in_range(reported(&two, 1, "aggregate"), 175, 178);
    assert_in_range(reported(&one, 1, "rest"), 62, 65);
    gate_free(b);
}

static void calls_that_were_held_back_are_counted_once(void **state)
{
    struct budget_rules rules = rules_of(900);
    struct github_answer refusal = { 0 };
    struct gate *b = gate_new(&rules);
    struct gate_user p = payer(state, b, BUDGET_REST);
    assert_int_equal(sent(&p, 25, &refusal), 22);
    assert_int_equal(reported(&p, 2, "rest"), 3);
    assert_int_equal(reported(&p, 2, "rest"), 0);
    gate_free(b);
}

static void githubs_number_is_of_the_installation_with_least_until_its_hour_is_over(void **state)
{
    static const struct {
        int64_t left, for_ms, reported;
    } cases[] = { { 42, 60000, 42 }, { 42, -1, 4000 } };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gate *b = gate_new(NULL);
        struct gate_user p = alone(b, 0);
        struct github_answer one = { .budget_left = cases[i].left,
                                     .budget_limit = 5000,
                                     .budget_reset_ms = clock_mono_ms() + cases[i].for_ms };
        struct github_answer other = { .budget_left = 4000,
                                       .budget_limit = 5000,
                                       .budget_reset_ms = clock_mono_ms() + 60000 };
        struct metrics *m = metrics_new(families, 3);
        gate_report(&p, m, &indexes, STR_LIT("L1"));
        assert_true(metrics_value(m, 0, METRIC_LABELS(STR_LIT("L1"))) == 0);
        gate_answered(&p, REPO, &one);
        gate_answered(&p, STR_LIT("other/repo"), &other);
        p.report_us = 0; /* it is a second later */
        gate_report(&p, m, &indexes, STR_LIT("L1"));
        assert_int_equal(metrics_value(m, 0, METRIC_LABELS(STR_LIT("L1"))), cases[i].reported);
        metrics_free(m);
        gate_free(b);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, redis_fixture_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_and_replicas_take_of_one_budget),
        TEST(a_refusal_names_the_budget_and_spends_nothing),
        TEST(a_refusal_is_remembered_until_its_moment_and_asks_nobody),
        TEST(a_class_does_not_wait_for_one_below_it),
        TEST(what_costs_another_part_goes_on),
        TEST(one_downstream_over_its_share_holds_up_no_other),
        TEST(a_limit_of_github_s_holds_for_all),
        TEST(a_limit_of_github_s_lasts_no_longer_for_a_queue_of_ours),
        TEST(what_github_says_is_left_goes_with_the_next_call),
        TEST(the_limit_of_requests_is_the_lower_of_ours_and_githubs),
        TEST(without_redis_a_process_takes_its_part_over_all_threads),
        TEST(when_redis_goes_the_level_that_it_told_is_where_a_process_begins),
        TEST(a_refusal_without_redis_is_looked_at_again_after_10_s),
        TEST(a_call_that_was_held_back_is_told_so_also_when_room_is_there_again),
        TEST(no_limits_ask_nobody),
        TEST(the_whole_app_can_be_one_account),
        TEST(what_is_left_is_of_the_account_with_least_whoever_asked_last),
        TEST(calls_that_were_held_back_are_counted_once),
        TEST(githubs_number_is_of_the_installation_with_least_until_its_hour_is_over),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

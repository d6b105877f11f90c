/* What the gate knows by itself, without Redis: how calls of an account end, and how many are in
 * flight. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/github/github.h"
#include "common/model/task.h"

#define A STR_LIT("Org/a")
#define B STR_LIT("other/b")

static int64_t now_ms;

int clock_gettime(clockid_t id, struct timespec *to)
{
    int failed = (int)syscall(SYS_clock_gettime, id, to);
    if (id == CLOCK_MONOTONIC)
        *to = (struct timespec){ .tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000 };
    return failed;
}

static const struct github_answer unknown = {
    .err = ERR_UNKNOWN, .status = 502, .sent_ms = 1, .budget_left = -1, .reason = "502 Bad Gateway"
};
static const struct github_answer late = { .err = ERR_RETRY, .because = GATE_IN_FLIGHT };
static const struct github_answer sent = { .err = OK, .status = 204, .sent_ms = 1 };
static const struct github_answer refused = { .err = ERR_REFUSE, .status = 422, .sent_ms = 1 };

static struct gate_user user;

static int setup(void **state)
{
    (void)state;
    now_ms = 1000000;
    user = (struct gate_user){ .gate = gate_new(NULL) };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gate_free(user.gate);
    return 0;
}

static bool enters(struct str repo, struct github_answer *ret)
{
    const struct gate_call call = { .repo = repo, .kind = BUDGET_DISPATCH };
    return gate_enter(&user, &call, ret);
}

/* Of a call that ends at once. */
static bool may(struct str repo)
{
    struct github_answer answer;
    bool entered = enters(repo, &answer);
    if (entered)
        gate_leave(&user, repo);
    else
        assert_true(answer.err == ERR_RETRY && answer.because == GATE_BREAKER && !answer.sent_ms);
    return entered;
}

static void answered(struct str repo, const struct github_answer *answer)
{
    struct github_answer seen = *answer;
    gate_answered(&user, repo, &seen);
}

static void fail_times(int times)
{
    while (times--)
        answered(A, &unknown);
}

static void opens_at_the_last_of_a_run_of_failures(void **state)
{
    struct gate_news news;
    (void)state;
    fail_times(GATE_FAILURES - 1);
    assert_true(may(A));
    assert_false(gate_news(user.gate, &news));
    fail_times(1);
    assert_false(may(A));
    now_ms += 1000; /* it is looked for once a second */
    assert_true(gate_news(user.gate, &news));
    assert_true(news.open);
    assert_string_equal(news.account, "org");
    assert_string_equal(news.error, "502 Bad Gateway");
    fail_times(1);
    now_ms += 1000;
    assert_false(gate_news(user.gate, &news)); /* it was open already */
}

static void it_is_of_all_repositories_of_the_account_and_of_no_other(void **state)
{
    (void)state;
    fail_times(GATE_FAILURES);
    assert_false(may(STR_LIT("ORG/other")));
    assert_true(may(B));
}

static void a_success_between_begins_the_run_anew(void **state)
{
    (void)state;
    fail_times(GATE_FAILURES - 1);
    answered(A, &sent);
    fail_times(GATE_FAILURES - 1);
    assert_true(may(A));
}

static void one_probe_goes_in_each_period(void **state)
{
    (void)state;
    fail_times(GATE_FAILURES);
    int64_t at_ms = now_ms + GATE_PROBE_MS;
    assert_int_equal(gate_probe_ms(user.gate, A), at_ms);
    now_ms = at_ms - 1;
    assert_false(may(A));
    now_ms = at_ms;
    assert_true(may(A));
    assert_false(may(A));
    fail_times(1);
    now_ms = at_ms + GATE_PROBE_MS - 1;
    assert_false(may(A));
    now_ms = at_ms + GATE_PROBE_MS;
    assert_true(may(A));
}

static void it_says_since_when_it_is_open_and_when_the_next_probe_goes(void **state)
{
    struct github_answer answer;
    (void)state;
    fail_times(GATE_FAILURES);
    int64_t opened_ms = now_ms;
    now_ms += GATE_PROBE_MS;
    assert_true(may(A));
    fail_times(1);
    now_ms += 500;
    assert_false(enters(A, &answer));
    assert_int_equal(answer.since_ms, opened_ms);
    assert_int_equal(answer.wait_until_ms, opened_ms + 2 * GATE_PROBE_MS);
    assert_string_equal(answer.reason,
                        "the downstream failed again and again: its breaker is open");
    assert_int_equal(gate_probe_ms(user.gate, B), 0);
}

static void a_probe_that_asked_nothing_leaves_its_place_to_another(void **state)
{
    struct gate_bill bill;
    struct github_answer answer;
    const struct gate_call call = { .repo = A, .kind = BUDGET_DISPATCH };
    (void)state;
    fail_times(GATE_FAILURES);
    now_ms += GATE_PROBE_MS;
    assert_true(gate_bill(&user, &call, &bill, &answer)); /* perhaps it needs no call */
    assert_true(may(A));
    assert_false(may(A));
    answered(A, &late);
    assert_true(may(A));
}

static void what_was_under_way_when_it_opened_puts_no_probe_off(void **state)
{
    (void)state;
    fail_times(GATE_FAILURES);
    now_ms += GATE_PROBE_MS - 1;
    fail_times(3);
    now_ms += 1;
    assert_true(may(A));
}

static void heals_at_the_first_answer_also_a_refusal_or_a_limit(void **state)
{
    static const struct github_answer limit = {
        .err = ERR_RETRY, .because = GATE_RATE_LIMIT, .wait_until_ms = 1, .sent_ms = 1
    };
    const struct github_answer *const answers[] = { &sent, &refused, &limit };
    struct gate_news news;
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        fail_times(GATE_FAILURES);
        assert_true(gate_news(user.gate, &news) && news.open);
        answered(A, answers[i]);
        assert_true(gate_news(user.gate, &news) && !news.open && !news.forgotten);
        assert_true(may(A) && may(A));
        fail_times(GATE_FAILURES - 1);
        assert_true(may(A));
        answered(A, &sent);
    }
}

static void what_could_not_be_sent_is_a_failure_and_so_is_a_401(void **state)
{
    static const struct github_answer failures[] = {
        { .err = ERR_RETRY, .reason = "connection refused" },
        { .err = ERR_RETRY, .status = 401, .sent_ms = 1, .reason = "401" },
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fail_times(GATE_FAILURES - 1);
        answered(A, &failures[i]);
        assert_false(may(A));
        answered(A, &sent);
    }
}

static void one_that_nobody_asks_for_any_more_is_forgotten(void **state)
{
    struct gate_news news;
    (void)state;
    fail_times(GATE_FAILURES);
    assert_true(gate_news(user.gate, &news));
    now_ms += GATE_IDLE_MS;
    assert_false(gate_news(user.gate, &news));
    assert_true(may(A)); /* the probe: it is asked for */
    now_ms += GATE_IDLE_MS;
    assert_false(gate_news(user.gate, &news));
    now_ms += 1000;
    assert_true(gate_news(user.gate, &news));
    assert_true(!news.open && news.forgotten);
    assert_true(may(A) && may(A));
}

/* ---- GitHub's limits ---- */

static void a_limit_that_names_no_time_doubles_until_16_minutes(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct github_answer limit = { .err = ERR_RETRY, .because = GATE_RATE_LIMIT, .sent_ms = 1 };
        struct github_answer same = limit, held;
        gate_answered(&user, A, &limit);
        gate_answered(&user, A, &same); /* was under way */
        assert_int_equal(limit.wait_until_ms, now_ms + (60000LL << (i < 4 ? i : 4)));
        assert_int_equal(same.wait_until_ms, limit.wait_until_ms);
        assert_false(enters(A, &held));
        assert_int_equal(held.because, GATE_RATE_LIMIT);
        assert_int_equal(held.wait_until_ms, limit.wait_until_ms);
        now_ms = limit.wait_until_ms;
        assert_true(may(A));
    }
    answered(A, &sent);
    struct github_answer limit = { .err = ERR_RETRY, .because = GATE_RATE_LIMIT, .sent_ms = 1 };
    gate_answered(&user, A, &limit);
    assert_int_equal(limit.wait_until_ms, now_ms + 60000);
}

static void a_process_has_its_part_of_100_calls_in_flight_for_each_account(void **state)
{
    static const struct {
        int replicas, most;
    } cases[] = { { 0, 100 }, { 1, 100 }, { 8, 12 }, { 10000, 1 } };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct budget_rules rules = { .replicas = cases[i].replicas };
        const struct gate_call inside = { .repo = A, .kind = BUDGET_DISPATCH, .inside = true };
        struct gate *old = user.gate;
        struct github_answer answer;
        int n = 0;
        user.gate = gate_new(&rules);
        user.class = BUDGET_REST;
        while (enters(A, &answer))
            n++;
        assert_int_equal(n, cases[i].most - cases[i].most / 4); /* the others have a quarter left */
        user.class = BUDGET_L4;
        while (enters(A, &answer))
            n++;
        assert_int_equal(n, cases[i].most);
        assert_true(answer.err == ERR_RETRY && answer.because == GATE_IN_FLIGHT);
        assert_in_range(answer.wait_until_ms - now_ms, 1, 1000);
        assert_false(gate_reserve(&user, A));
        assert_true(enters(B, &answer));
        gate_leave(&user, A);
        assert_true(gate_reserve(&user, A)); /* counts, too */
        assert_false(enters(A, &answer));
        assert_true(gate_enter(&user, &inside, &answer)); /* but once */
        gate_leave(&user, A);
        assert_true(enters(A, &answer));
        gate_free(user.gate);
        user.gate = old;
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(opens_at_the_last_of_a_run_of_failures),
        TEST(it_is_of_all_repositories_of_the_account_and_of_no_other),
        TEST(a_success_between_begins_the_run_anew),
        TEST(one_probe_goes_in_each_period),
        TEST(it_says_since_when_it_is_open_and_when_the_next_probe_goes),
        TEST(a_probe_that_asked_nothing_leaves_its_place_to_another),
        TEST(what_was_under_way_when_it_opened_puts_no_probe_off),
        TEST(heals_at_the_first_answer_also_a_refusal_or_a_limit),
        TEST(what_could_not_be_sent_is_a_failure_and_so_is_a_401),
        TEST(one_that_nobody_asks_for_any_more_is_forgotten),
        TEST(a_limit_that_names_no_time_doubles_until_16_minutes),
        TEST(a_process_has_its_part_of_100_calls_in_flight_for_each_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* budget_shared.lua in a real Redis: the arithmetic of model/budget.c, and the fair share. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/view/budget_shared.h"
#include "tests/unit/support/redis_fixture.h"

#define ACCOUNT STR_LIT("org")
#define HOUR_US 3600000000LL

static const struct budget_rules github = {
    .limit = { 5000, 900, 80, 500 },
    .replicas = 8,
    .content = { [BUDGET_CHECK_RUN] = true },
};

static int64_t of_pr; /* of the calls that follow */

static struct budget_answer take(void **state, const struct budget_rules *rules,
                                 struct str downstream, enum budget_call call,
                                 enum budget_class class, int64_t limited_us)
{
    struct redis_fixture *f = *state;
    struct budget_answer answer;
    struct budget_bill bill = { .account = ACCOUNT, .downstream = downstream, .pr = of_pr };
    budget_price(rules, call, class, -1, 0, &bill.ask);
    bill.ask.limited_us = limited_us;
    assert_int_equal(budget_take_shared(f->redis, &bill, &answer, NULL), OK);
    return answer;
}

/* As many as there are at once, up to max. */
static int all(void **state, const struct budget_rules *rules, const char *downstream,
               enum budget_class class, int max)
{
    int n = 0;
    while (n < max &&
           take(state, rules, str_of(downstream), BUDGET_CHECK_RUN, class, 0).wait_us == 0)
        n++;
    return n;
}

static int64_t number(void **state, struct str command, struct str key)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(command, key), NULL), OK);
    return v->integer;
}

/* The function as the relay has it, at a time of the test's choice. */
static void put_script(struct buf *to)
{
    extern const char view_budget_take_lua[];
    struct str text = str_of(view_budget_take_lua);
    ptrdiff_t end = str_find_str(text, STR_LIT("-- with: budget_shared.lua"));
    assert_true(end > 0);
    buf_put(to, (struct str){ text.ptr, (size_t)end });
    buf_puts(to, "local wait, bucket, account = budget(tonumber(ARGV[1]), KEYS, 1, ARGV[2])\n"
                 "return { account, tonumber(ARGV[1]), wait, bucket }");
}

/* Redis and memory answer alike, whatever is asked when. */
static void it_counts_as_memory_does(void **state)
{
    struct redis_fixture *f = *state;
    struct budget_rules rules = github;
    struct budget_state memory = { { 0 }, 0 };
    struct buf script;
    int64_t now = 1000 * HOUR_US;
    int taken = 0, refused[BUDGET_BUCKETS + 1] = { 0 };
    rules.limit[BUDGET_REQUESTS_HOUR] = 20000; /* so that each bucket refuses now and then */
    rules.limit[BUDGET_CONTENT_HOUR] = 120;
    buf_init(&script, 1 << 16);
    put_script(&script);
    struct redis_script eval = { .source = buf_str(&script).ptr };
    srand(3);
    for (int i = 0; i < 4000; i++) {
        struct budget_bill bill = { .account = STR_LIT("a") };
        struct budget_args args;
        struct budget_answer wanted, answer;
        const struct redis_value *v;
        char text[STR_NUMBER_SIZE];
        now += rand() % 20 ? rand() % 300000 : (i % 3 ? HOUR_US / 50 : -HOUR_US / 100);
        /* One after the other: compilers choose the order of arguments. */
        int left = rand() % 50 ? -1 : rand() % 1500;
        enum budget_class class = (enum budget_class)(rand() % BUDGET_CLASSES);
        enum budget_call call = (enum budget_call)(rand() % BUDGET_CALLS);
        budget_price(&rules, call, class, left, HOUR_US, &bill.ask);
        bill.ask.limited_us = rand() % 100 ? 0 : rand() % 5000000;
        memset(bill.ask.share_cost_us, 0, sizeof(bill.ask.share_cost_us));
        budget_args(&bill, &args);
        const struct str argv[] = { args.key[0], str_number(text, now), args.packed };
        assert_int_equal(redis_call_script(f->redis, &eval, 1, 3, argv, &v, NULL), OK);
        assert_int_equal(budget_answer_read(v->items, v->n, &answer, NULL), OK);
        budget_take(&memory, &bill.ask, now, &wanted);
        assert_int_equal(answer.wait_us, wanted.wait_us);
        assert_int_equal(answer.limited, wanted.limited);
        if (wanted.wait_us && !wanted.limited)
            assert_int_equal(answer.bucket, wanted.bucket);
        for (int b = 0; b < BUDGET_BUCKETS; b++)
            assert_int_equal(answer.used_us[b], wanted.used_us[b]);
        taken += !wanted.wait_us;
        refused[wanted.limited ? 0 : wanted.bucket + 1] += wanted.wait_us > 0;
        (void)number(state, STR_LIT("PERSIST"), args.key[0]); /* its time is not ours */
    }
    assert_true(taken > 500);
    for (int b = 0; b <= BUDGET_BUCKETS; b++)
        assert_true(refused[b] > 5);
    buf_clear(&script);
}

static void it_is_taken_once_for_all_who_ask(void **state)
{
    assert_int_equal(all(state, &github, "org/a", BUDGET_AGGREGATE, 1000), 20);
    struct budget_answer answer =
        take(state, &github, STR_LIT("org/b"), BUDGET_CHECK_RUN, BUDGET_AGGREGATE, 0);
    assert_int_equal(answer.bucket, BUDGET_CONTENT_MINUTE);
    assert_in_range(answer.wait_us, 1, 1200000);
    assert_int_equal(take(state, &github, STR_LIT("org/b"), BUDGET_WRITE, BUDGET_REST, 0).wait_us,
                     0);
}

static void a_limit_that_github_told_one_of_us_holds_for_all_and_no_longer(void **state)
{
    struct budget_answer first =
        take(state, &github, STR_NONE, BUDGET_READ, BUDGET_AGGREGATE, 300000);
    assert_true(first.limited && first.wait_us == 300000);
    struct budget_answer second = take(state, &github, STR_NONE, BUDGET_READ, BUDGET_L4, 1000);
    assert_true(second.limited); /* a shorter one shortens nothing */
    assert_in_range(second.wait_us, 100000, 300000);
    usleep((useconds_t)second.wait_us);
    assert_int_equal(take(state, &github, STR_NONE, BUDGET_READ, BUDGET_L4, 0).wait_us, 0);
}

/* No limit in the way but that of the hour: 125 at once, 31 of them are a downstream's share. */
static const struct budget_rules hour = {
    .limit = { [BUDGET_CONTENT_HOUR] = 500 },
    .replicas = 8,
    .content = { [BUDGET_CHECK_RUN] = true },
};

static void one_that_floods_holds_up_none_that_has_had_little(void **state)
{
    assert_in_range(all(state, &hour, "org/flood", BUDGET_REST, 1000), 31, 32);
    assert_in_range(all(state, &hour, "org/other", BUDGET_REST, 1000), 30, 31); /* to the half */
    assert_int_equal(all(state, &hour, "org/flood", BUDGET_URGENT, 1000), 0);
    assert_in_range(all(state, &hour, "org/third", BUDGET_URGENT, 1000), 31, 32);
    assert_int_equal(all(state, &hour, "org/flood", BUDGET_AGGREGATE, 1000), 0);
    assert_in_range(all(state, &hour, "org/late", BUDGET_AGGREGATE, 1000), 31, 32);
}

static void one_that_is_alone_loses_nothing_by_its_share(void **state)
{
    assert_in_range(all(state, &hour, "org/a", BUDGET_AGGREGATE, 1000), 93, 94); /* less 25 % */
    /* And what it took beyond its share does not keep it over it for longer. */
    assert_in_range(number(state, STR_LIT("PTTL"), STR_LIT("budget:us:org|org/a")), 1,
                    125 * 3604000LL / 375 + 100);
}

/* Not even at the downstreams that both go to. */
static void a_pull_request_that_floods_holds_up_no_other(void **state)
{
    of_pr = 1;
    assert_in_range(all(state, &hour, "org/a", BUDGET_AGGREGATE, 40), 40, 40);
    assert_in_range(all(state, &hour, "org/b", BUDGET_AGGREGATE, 1000), 31,
                    32); /* until it is over both */
    of_pr = 2;
    assert_in_range(all(state, &hour, "org/b", BUDGET_AGGREGATE, 1000), 15, 16);
    of_pr = 0;
}

static void over_both_shares_it_leaves_half(void **state)
{
    of_pr = 1;
    assert_in_range(all(state, &hour, "org/a", BUDGET_AGGREGATE, 1000), 61, 63);
    of_pr = 2; /* 31 are left to it, of which 15 are its share */
    assert_in_range(all(state, &hour, "org/a", BUDGET_AGGREGATE, 1000), 15, 16);
    of_pr = 0;
}

static void case_of_the_names_does_not_matter(void **state)
{
    assert_in_range(all(state, &hour, "org/a", BUDGET_REST, 1000), 31, 32);
    assert_int_equal(all(state, &hour, "Org/A", BUDGET_REST, 1000), 0);
}

static void without_a_limit_an_hour_the_share_is_of_the_minute_s(void **state)
{
    struct budget_rules minute = hour;
    minute.limit[BUDGET_CONTENT_HOUR] = 0;
    minute.limit[BUDGET_CONTENT_MINUTE] = 80;
    assert_int_equal(all(state, &minute, "org/flood", BUDGET_REST, 1000), 5);
    assert_int_equal(all(state, &minute, "org/other", BUDGET_REST, 1000), 5);
}

static void the_keys_go_when_the_buckets_are_full(void **state)
{
    (void)take(state, &github, STR_LIT("org/a"), BUDGET_CHECK_RUN, BUDGET_REST, 0);
    int64_t token_ms = 3604000 / 375;
    assert_in_range(number(state, STR_LIT("PTTL"), STR_LIT("budget:us:org")), token_ms - 500,
                    token_ms + 2);
    assert_in_range(number(state, STR_LIT("PTTL"), STR_LIT("budget:us:org|org/a")),
                    4 * token_ms - 500, 4 * token_ms + 8);
    struct budget_answer limited =
        take(state, &github, STR_NONE, BUDGET_READ, BUDGET_REST, 3 * HOUR_US);
    assert_true(limited.limited);
    assert_in_range(number(state, STR_LIT("PTTL"), STR_LIT("budget:us:org")), 3 * 3590000,
                    3 * 3600000 + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_counts_as_memory_does, redis_fixture_empty),
        cmocka_unit_test_setup(it_is_taken_once_for_all_who_ask, redis_fixture_empty),
        cmocka_unit_test_setup(a_limit_that_github_told_one_of_us_holds_for_all_and_no_longer,
                               redis_fixture_empty),
        cmocka_unit_test_setup(one_that_floods_holds_up_none_that_has_had_little,
                               redis_fixture_empty),
        cmocka_unit_test_setup(one_that_is_alone_loses_nothing_by_its_share, redis_fixture_empty),
        cmocka_unit_test_setup(a_pull_request_that_floods_holds_up_no_other, redis_fixture_empty),
        cmocka_unit_test_setup(over_both_shares_it_leaves_half, redis_fixture_empty),
        cmocka_unit_test_setup(case_of_the_names_does_not_matter, redis_fixture_empty),
        cmocka_unit_test_setup(without_a_limit_an_hour_the_share_is_of_the_minute_s,
                               redis_fixture_empty),
        cmocka_unit_test_setup(the_keys_go_when_the_buckets_are_full, redis_fixture_empty),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

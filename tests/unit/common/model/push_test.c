#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/push.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccc"

static int64_t pr_of(const char *message)
{
    return commit_pull_request(str_of(message));
}

static void the_message_names_the_pull_request(void **state)
{
    (void)state;
    assert_int_equal(pr_of("Fix the kernel (#171269)"), 171269);
    assert_int_equal(pr_of("Fix (#1) the kernel (#2)\n\nmore (#3)"), 2);
    assert_int_equal(
        pr_of(
            "Fix\n\nSummary\r\nPull Request resolved: https://github.com/pytorch/pytorch/pull/5\r\n"
            "Approved by: x"),
        5);
    assert_int_equal(pr_of("Revert \"Fix the kernel (#171269)\""), 0);
    assert_int_equal(pr_of("Fix (#0)"), 0);
    assert_int_equal(pr_of("Fix (#)"), 0);
    assert_int_equal(pr_of("(#7)"), 7);
    assert_int_equal(pr_of("#7)"), 0);
    assert_int_equal(pr_of(""), 0);
    assert_int_equal(
        pr_of("Fix\nPull Request resolved: https://github.com/pytorch/pytorch/issues/5"), 0);
}

static struct push push_of(const char *ref, const char *pushed_at)
{
    char body[2048];
    struct push push;
    snprintf(body, sizeof(body),
             "{\"ref\":\"%s\",\"before\":\"" A "\",\"after\":\"" C "\",\"commits\":["
             "{\"message\":\"One\\u0000\\ud800 (#1)\\n\\n\\udc00more\",\"id\":\"" B "\"},"
             "{\"id\":\"no commit\",\"message\":\"x\"},"
             "{\"id\":\"" C "\",\"message\":\"%0*d\"}],"
             "\"repository\":{\"pushed_at\":%s,\"default_branch\":\"main\"}}",
             ref, 200, 7, pushed_at);
    assert_int_equal(push_read(str_of(body), &push, NULL), OK);
    return push;
}

static void commits_come_oldest_first_with_the_one_before(void **state)
{
    (void)state;
    struct push push = push_of("refs/heads/main", "1795231200");
    assert_int_equal(push.pushed_s, 1795231200);
    assert_int_equal(push.n, 2);
    assert_string_equal(push.commits[0].sha, B);
    assert_string_equal(push.commits[0].title, "One\xEF\xBF\xBD"
                                               "\xEF\xBF\xBD"
                                               " (#1)");
    assert_int_equal(push.commits[0].pr, 1);
    assert_string_equal(push.commits[0].parent, A);
    assert_string_equal(push.commits[1].sha, C);
    assert_string_equal(push.commits[1].parent, B);
    assert_int_equal(strlen(push.commits[1].title), 120);
    push_clear(&push);
}

static void only_the_default_branch_counts(void **state)
{
    (void)state;
    static const char *const others[] = { "refs/heads/main2", "refs/tags/main", "main", "" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct push push = push_of(others[i], "1");
        assert_int_equal(push.n, 0);
        push_clear(&push);
    }
}

static void a_time_that_is_none_counts_as_absent(void **state)
{
    (void)state;
    static const char *const times[] = { "9000000000000000000", "-1", "\"2026-01-01T00:00:00Z\"",
                                         "null" };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct push push = push_of("refs/heads/main", times[i]);
        assert_int_equal(push.pushed_s, 0);
        push_clear(&push);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_message_names_the_pull_request),
        cmocka_unit_test(commits_come_oldest_first_with_the_one_before),
        cmocka_unit_test(only_the_default_branch_counts),
        cmocka_unit_test(a_time_that_is_none_counts_as_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

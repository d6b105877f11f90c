/* When a commit is past: rules that need no Redis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/view/pull_requests.h"

static void a_commit_is_past_once_a_newer_webhook_names_another_head(void **state)
{
    (void)state;
    struct pr_now now = { .head_sha = "aaaaaaa", .received_ms = 1000 };
    assert_true(pr_now_is_past(&now, STR_LIT("bbbbbbb"), 999));
    assert_false(pr_now_is_past(&now, STR_LIT("AAAAAAA"), 999));  /* it is the head */
    assert_false(pr_now_is_past(&now, STR_LIT("bbbbbbb"), 1001)); /* its webhook comes */
    assert_false(pr_now_is_past(&now, STR_LIT("bbbbbbb"), 0));    /* not known */
    now.received_ms = 0;
    assert_false(pr_now_is_past(&now, STR_LIT("bbbbbbb"), 999));
    now = (struct pr_now){ .received_ms = 1000 };
    assert_false(pr_now_is_past(&now, STR_LIT("bbbbbbb"), 999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_past_once_a_newer_webhook_names_another_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

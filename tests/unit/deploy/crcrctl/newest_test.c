/* Nothing older takes the place of what a compacted topic keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/newest.h"

static void the_value_seen_last_is_the_newest(void **state)
{
    (void)state;
    struct newest n;
    newest_init(&n);
    struct str key = STR_LIT("job"), old = STR_LIT("in_progress"), last = STR_LIT("completed");
    newest_want(&n, key);
    newest_want(&n, key);
    newest_see(&n, key, old);
    assert_true(newest_is(&n, key, old));
    newest_see(&n, key, last);
    assert_false(newest_is(&n, key, old));
    assert_true(newest_is(&n, key, last));
    newest_clear(&n);
}

static void what_the_topic_does_not_hold_may_go_there(void **state)
{
    (void)state;
    struct newest n;
    newest_init(&n);
    newest_want(&n, STR_LIT("job"));
    newest_see(&n, STR_LIT("other"), STR_LIT("x"));
    assert_true(newest_is(&n, STR_LIT("job"), STR_LIT("anything")));
    newest_clear(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_value_seen_last_is_the_newest),
        cmocka_unit_test(what_the_topic_does_not_hold_may_go_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

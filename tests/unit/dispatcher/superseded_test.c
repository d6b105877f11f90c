#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/superseded.h"

static bool may(void *opaque, struct str downstream)
{
    (void)opaque;
    (void)downstream;
    return true;
}

static struct task_in_hand push_of(const char *delivery, const char *action, int64_t updated_ms)
{
    return (struct task_in_hand){
        .item.seq = { .updated_ms = updated_ms },
        .task = { .event = { .kind = EVENT_PULL_REQUEST,
                             .delivery = str_of(delivery),
                             .action = str_of(action) },
                  .kind = TASK_DISPATCH,
                  .seq = { .updated_ms = updated_ms } },
    };
}

/* Whether first, which was taken, is superseded by second, which came meanwhile. */
static bool superseded(struct task_in_hand first, struct task_in_hand second)
{
    struct lanes *lanes = lanes_new(1, may, NULL);
    lanes_put(lanes, STR_LIT("org/a"), STR_LIT("pytorch/pytorch#1"), &first.item);
    assert_ptr_equal(lanes_take(lanes, 0), &first.item);
    assert_false(superseded_by_waiting(&first));
    lanes_put(lanes, STR_LIT("org/a"), STR_LIT("pytorch/pytorch#1"), &second.item);
    bool is = superseded_by_waiting(&first);
    lanes_end(lanes, &first.item);
    lanes_remove(lanes, &second.item);
    lanes_free(lanes);
    return is;
}

static void an_older_push_is_and_a_newer_one_is_not(void **state)
{
    (void)state;
    assert_true(superseded(push_of("a", "synchronize", 1), push_of("b", "synchronize", 2)));
    assert_false(superseded(push_of("a", "synchronize", 2), push_of("b", "synchronize", 1)));
    assert_false(superseded(push_of("a", "synchronize", 1), push_of("b", "synchronize", 1)));
}

static void only_by_the_same_action_of_another_delivery(void **state)
{
    (void)state;
    assert_false(superseded(push_of("a", "opened", 1), push_of("b", "closed", 2)));
    assert_false(superseded(push_of("a", "synchronize", 1), push_of("a", "synchronize", 2)));
}

static void not_one_that_may_have_been_called(void **state)
{
    struct task_in_hand first = push_of("a", "synchronize", 1);
    (void)state;
    first.task.maybe_duplicate = MARK_ANSWER_UNSEEN;
    assert_false(superseded(first, push_of("b", "synchronize", 2)));
}

static void neither_a_rerun_nor_what_is_replayed_again_takes_part(void **state)
{
    struct task_in_hand rerun = push_of("b", "synchronize", 2), again = rerun;
    (void)state;
    rerun.task.kind = TASK_RERUN_ALL;
    again.task.event.again = STR_LIT("r-1");
    assert_false(superseded(push_of("a", "synchronize", 1), rerun));
    assert_false(superseded(push_of("a", "synchronize", 1), again));
    again.item.seq = again.task.seq = (struct task_seq){ .updated_ms = 1 };
    assert_false(superseded(again, push_of("c", "synchronize", 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_push_is_and_a_newer_one_is_not),
        cmocka_unit_test(only_by_the_same_action_of_another_delivery),
        cmocka_unit_test(not_one_that_may_have_been_called),
        cmocka_unit_test(neither_a_rerun_nor_what_is_replayed_again_takes_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

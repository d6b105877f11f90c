#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dispatcher/lane.h"

#define A STR_LIT("org/a"), STR_LIT("pytorch/pytorch#1")
#define B STR_LIT("org/b"), STR_LIT("pytorch/pytorch#1")

#define MAX_OUT 2 /* of one downstream */

static struct lane_item item_at(int64_t updated_ms, int64_t offset)
{
    return (struct lane_item){ .seq = { .updated_ms = updated_ms, .offset = offset } };
}

static struct lane_item *stuck(struct lanes *l, int64_t now_ms)
{
    int64_t since_ms;
    return lanes_take_stuck(l, now_ms, &since_ms);
}

static const char *none_of; /* nothing of this downstream may be taken */

static bool may(void *opaque, struct str downstream)
{
    (void)opaque;
    return !none_of || !str_is(downstream, none_of);
}

static int setup(void **state)
{
    none_of = NULL;
    *state = lanes_new(MAX_OUT, may, NULL);
    return 0;
}

static int teardown(void **state)
{
    lanes_free(*state);
    return 0;
}

static void goes_out_in_order_of_seq_whatever_the_order_of_arrival(void **state)
{
    struct lanes *l = *state;
    struct lane_item third = item_at(20, 1), first = item_at(10, 5), second = item_at(10, 6);
    lanes_put(l, A, &third);
    lanes_put(l, A, &second);
    lanes_put(l, A, &first);
    struct lane_item *const order[] = { &first, &second, &third };
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(lanes_take(l, 0), order[i]);
        lanes_end(l, order[i]);
    }
    assert_null(lanes_take(l, 0));
}

static void what_waits_behind_a_taken_item_is_seen_in_order(void **state)
{
    struct lanes *l = *state;
    struct lane_item first = item_at(0, 1), second = item_at(0, 2), third = item_at(0, 3);
    lanes_put(l, A, &first);
    assert_ptr_equal(lanes_take(l, 0), &first);
    assert_null(lanes_behind(&first));
    lanes_put(l, A, &third);
    lanes_put(l, A, &second);
    assert_ptr_equal(lanes_behind(&first), &second);
    assert_ptr_equal(second.next, &third);
    assert_null(third.next);
}

static void one_of_a_lane_is_out_at_a_time(void **state)
{
    struct lanes *l = *state;
    struct lane_item first = item_at(0, 1), second = item_at(0, 2);
    lanes_put(l, A, &first);
    lanes_put(l, A, &second);
    assert_ptr_equal(lanes_take(l, 0), &first);
    assert_null(lanes_take(l, 0));
    assert_true(lanes_due(l) == INT64_MAX);
    lanes_end(l, &first);
    assert_true(lanes_due(l) == 0);
    assert_ptr_equal(lanes_take(l, 0), &second);
    lanes_end(l, &second);
}

static void no_lane_blocks_another(void **state)
{
    struct lanes *l = *state;
    struct lane_item a = item_at(0, 1), a2 = item_at(0, 2), b = item_at(0, 3);
    lanes_put(l, A, &a);
    lanes_put(l, A, &a2);
    lanes_put(l, B, &b);
    assert_ptr_equal(lanes_take(l, 0), &a);
    assert_ptr_equal(lanes_take(l, 0), &b);
    lanes_hold(l, &a, 1000);
    assert_null(lanes_take(l, 999));
    lanes_end(l, &b);
    assert_ptr_equal(lanes_take(l, 1000), &a);
    lanes_end(l, &a);
    assert_ptr_equal(lanes_take(l, 1000), &a2);
    lanes_end(l, &a2);
}

static void a_held_lane_keeps_what_comes_behind_and_lets_an_older_one_pass(void **state)
{
    struct lanes *l = *state;
    struct lane_item held = item_at(10, 1), newer = item_at(20, 2), older = item_at(5, 0);
    lanes_put(l, A, &held);
    assert_ptr_equal(lanes_take(l, 0), &held);
    lanes_hold(l, &held, 50);
    lanes_put(l, A, &newer);
    lanes_put(l, A, &older);
    assert_true(lanes_due(l) == 50);
    assert_null(lanes_take(l, 49));
    struct lane_item *const order[] = { &older, &held, &newer };
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(lanes_take(l, 50), order[i]);
        lanes_end(l, order[i]);
    }
}

static void the_lane_that_waits_least_is_due_first(void **state)
{
    struct lanes *l = *state;
    struct lane_item a = item_at(0, 1), b = item_at(0, 2);
    lanes_put(l, A, &a);
    lanes_put(l, B, &b);
    assert_ptr_equal(lanes_take(l, 0), &a);
    assert_ptr_equal(lanes_take(l, 0), &b);
    lanes_hold(l, &a, 300);
    lanes_hold(l, &b, 200);
    assert_true(lanes_due(l) == 200);
    assert_ptr_equal(lanes_take(l, 400), &b);
    assert_ptr_equal(lanes_take(l, 400), &a);
    lanes_end(l, &a);
    lanes_end(l, &b);
}

static void removed_items_are_not_handed_out_and_leave_no_lane_behind(void **state)
{
    struct lanes *l = *state;
    struct lane_item a = item_at(0, 1), a2 = item_at(0, 2), b = item_at(0, 3);
    lanes_put(l, A, &a);
    lanes_put(l, A, &a2);
    lanes_put(l, B, &b);
    lanes_remove(l, &b);
    lanes_remove(l, &a);
    assert_ptr_equal(lanes_take(l, 0), &a2);
    lanes_hold(l, &a2, 10);
    lanes_remove(l, &a2);
    assert_true(lanes_due(l) == INT64_MAX);
    lanes_put(l, A, &a);
    assert_ptr_equal(lanes_take(l, 0), &a);
    lanes_end(l, &a);
}

static void what_waits_behind_a_busy_one_can_be_removed(void **state)
{
    struct lanes *l = *state;
    struct lane_item out = item_at(0, 1), behind = item_at(0, 2), later = item_at(0, 3);
    lanes_put(l, A, &out);
    lanes_put(l, A, &behind);
    assert_ptr_equal(lanes_take(l, 0), &out);
    lanes_remove(l, &behind);
    lanes_put(l, A, &later);
    assert_null(lanes_take(l, 0)); /* the lane is still busy */
    lanes_end(l, &out);
    assert_ptr_equal(lanes_take(l, 0), &later);
    lanes_end(l, &later);
}

/* n items of as many lanes of org/a, put. */
static void put_many(struct lanes *l, struct lane_item *items, int n)
{
    for (int i = 0; i < n; i++) {
        char key[64];
        snprintf(key, sizeof(key), "pytorch/pytorch#%d", i);
        items[i] = item_at(0, i);
        lanes_put(l, STR_LIT("org/a"), str_of(key), &items[i]);
    }
}

static void a_downstream_has_only_so_many_out_and_others_pass_it(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[4], b = item_at(0, 9);
    put_many(l, a, 4);
    lanes_put(l, B, &b);
    assert_ptr_equal(lanes_take(l, 0), &a[0]);
    assert_ptr_equal(lanes_take(l, 0), &b);
    assert_ptr_equal(lanes_take(l, 0), &a[1]);
    assert_null(lanes_take(l, 0));
    assert_true(lanes_due(l) == INT64_MAX); /* no time brings a place */
    lanes_end(l, &b);
    assert_null(lanes_take(l, 0));
    lanes_end(l, &a[1]);
    assert_true(lanes_due(l) == 0);
    assert_ptr_equal(lanes_take(l, 0), &a[2]);
    lanes_end(l, &a[0]);
    lanes_end(l, &a[2]);
    assert_ptr_equal(lanes_take(l, 0), &a[3]);
    lanes_end(l, &a[3]);
}

static void a_held_item_gives_its_place_back(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[3];
    put_many(l, a, 3);
    assert_ptr_equal(lanes_take(l, 0), &a[0]);
    assert_ptr_equal(lanes_take(l, 0), &a[1]);
    lanes_hold(l, &a[0], 100);
    assert_ptr_equal(lanes_take(l, 0), &a[2]);
    assert_null(lanes_take(l, 100)); /* due, but there is no place again */
    lanes_end(l, &a[2]);
    assert_ptr_equal(lanes_take(l, 100), &a[0]);
    lanes_end(l, &a[0]);
    lanes_end(l, &a[1]);
}

static void what_waits_for_a_place_can_be_removed(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[3];
    put_many(l, a, 3);
    assert_ptr_equal(lanes_take(l, 0), &a[0]);
    assert_ptr_equal(lanes_take(l, 0), &a[1]);
    lanes_remove(l, &a[2]);
    lanes_end(l, &a[0]);
    assert_null(lanes_take(l, 0));
    lanes_end(l, &a[1]);
    assert_true(lanes_due(l) == INT64_MAX);
}

static void downstreams_take_turns(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[6], b = item_at(0, 9);
    put_many(l, a, 6);
    assert_ptr_equal(lanes_take(l, 0), &a[0]);
    lanes_put(l, B, &b);
    lanes_end(l, &a[0]);
    assert_ptr_equal(lanes_take(l, 0), &a[1]); /* it was first in the round */
    assert_ptr_equal(lanes_take(l, 0), &b);
    lanes_end(l, &a[1]);
    lanes_end(l, &b);
}

static void one_that_may_not_go_is_passed_over_and_has_the_next_turn(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[2], b = item_at(0, 9), b2 = item_at(0, 10);
    put_many(l, a, 2);
    lanes_put(l, B, &b);
    lanes_put(l, B, &b2);
    none_of = "org/a";
    assert_ptr_equal(lanes_take(l, 0), &b);
    assert_null(lanes_take(l, 0));
    assert_true(lanes_due(l) == 0);
    lanes_end(l, &b);
    none_of = NULL;
    assert_ptr_equal(lanes_take(l, 0), &a[0]);
    assert_ptr_equal(lanes_take(l, 0), &b2);
    lanes_end(l, &b2);
    lanes_end(l, &a[0]);
    lanes_remove(l, &a[1]);
}

static void what_waits_for_a_slow_downstream_is_handed_out_to_be_put_off(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[5], b = item_at(0, 9), b2 = item_at(0, 10);
    put_many(l, a, 4);
    lanes_put(l, B, &b);
    assert_ptr_equal(lanes_take(l, 100), &a[0]);
    assert_ptr_equal(lanes_take(l, 100), &b);
    lanes_put(l, B, &b2); /* its lane is busy, but a place is left */
    assert_ptr_equal(lanes_take(l, 100), &a[1]);
    assert_null(stuck(l, 100 + LANES_SLOW_MS - 1));
    assert_ptr_equal(stuck(l, 100 + LANES_SLOW_MS), &a[2]);
    lanes_end(l, &a[2]); /* put off: not a place that was given back */
    assert_null(lanes_take(l, 100 + LANES_SLOW_MS));
    assert_ptr_equal(stuck(l, 100 + LANES_SLOW_MS), &a[3]);
    lanes_end(l, &a[3]);
    assert_null(stuck(l, 100 + LANES_SLOW_MS));
    lanes_end(l, &b);
    lanes_end(l, &a[0]);
    lanes_end(l, &a[1]);
    lanes_remove(l, &b2);
}

static void a_slow_downstream_says_since_when(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[4];
    int64_t since_ms = 0, slow = 100 + LANES_SLOW_MS;
    put_many(l, a, 4);
    lanes_take(l, 100);
    lanes_take(l, 100);
    assert_ptr_equal(lanes_take_stuck(l, slow, &since_ms), &a[2]);
    assert_true(since_ms == slow);
    assert_ptr_equal(lanes_take_stuck(l, slow + 70000, &since_ms), &a[3]);
    assert_true(since_ms == slow);
    for (size_t i = 0; i < 4; i++)
        lanes_end(l, &a[i]);
}

static void a_slow_downstream_is_slow_until_its_places_come_back_in_time(void **state)
{
    struct lanes *l = *state;
    struct lane_item a[8];
    int64_t slow = 100 + LANES_SLOW_MS;
    put_many(l, a, 8);
    assert_ptr_equal(lanes_take(l, 100), &a[0]);
    assert_ptr_equal(lanes_take(l, 100), &a[1]);
    assert_ptr_equal(stuck(l, slow), &a[2]);
    lanes_end(l, &a[2]);
    lanes_end(l, &a[0]);
    assert_ptr_equal(lanes_take(l, slow), &a[3]);
    assert_ptr_equal(stuck(l, slow), &a[4]); /* full again: without patience now */
    lanes_end(l, &a[4]);
    lanes_end(l, &a[1]);
    assert_ptr_equal(lanes_take(l, slow + 10), &a[5]); /* 10 ms later: quick again */
    assert_null(stuck(l, slow + 20));
    lanes_remove(l, &a[6]);
    lanes_remove(l, &a[7]);
    lanes_end(l, &a[3]);
    lanes_end(l, &a[5]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(goes_out_in_order_of_seq_whatever_the_order_of_arrival),
        TEST(what_waits_behind_a_taken_item_is_seen_in_order),
        TEST(one_of_a_lane_is_out_at_a_time),
        TEST(no_lane_blocks_another),
        TEST(a_held_lane_keeps_what_comes_behind_and_lets_an_older_one_pass),
        TEST(the_lane_that_waits_least_is_due_first),
        TEST(removed_items_are_not_handed_out_and_leave_no_lane_behind),
        TEST(what_waits_behind_a_busy_one_can_be_removed),
        TEST(a_downstream_has_only_so_many_out_and_others_pass_it),
        TEST(a_held_item_gives_its_place_back),
        TEST(what_waits_for_a_place_can_be_removed),
        TEST(downstreams_take_turns),
        TEST(one_that_may_not_go_is_passed_over_and_has_the_next_turn),
        TEST(what_waits_for_a_slow_downstream_is_handed_out_to_be_put_off),
        TEST(a_slow_downstream_says_since_when),
        TEST(a_slow_downstream_is_slow_until_its_places_come_back_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

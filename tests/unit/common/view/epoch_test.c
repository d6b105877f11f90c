/* Against a real redis-server of its own: the rules live in Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/io/redis.h"
#include "common/view/epoch.h"
#include "tests/unit/support/redis_fixture.h"

static void command(struct redis_fixture *f, size_t argc, const struct str *argv)
{
    const struct redis_value *v;
    struct why why = { "" };
    if (redis_call(f->redis, &v, argc, argv, &why))
        fail_msg("%s", why.text);
}

/* As if its holder had been silent for too long. */
static void let_it_run_out(struct redis_fixture *f)
{
    command(f, REDIS_ARGS(STR_LIT("HSET"), STR_LIT("rebuild"), STR_LIT("until_ms"), STR_LIT("1")));
}

static enum view_lease take(struct redis_fixture *f, const char *owner, int64_t *fence)
{
    enum view_lease lease = VIEW_LEASE_BUSY;
    assert_int_equal(view_lease_take(f->redis, owner, &lease, fence, NULL), OK);
    return lease;
}

static int64_t taken_by(struct redis_fixture *f, const char *owner)
{
    int64_t fence = 0;
    assert_int_equal(take(f, owner, &fence), VIEW_LEASE_TAKEN);
    assert_true(fence > 0);
    return fence;
}

static int64_t epoch(struct redis_fixture *f)
{
    int64_t number = -1;
    assert_int_equal(view_epoch_get(f->redis, &number, NULL), OK);
    return number;
}

static void one_holds_the_lease_until_it_sets_the_epoch(void **state)
{
    struct redis_fixture *f = *state;
    int64_t fence = taken_by(f, "a"), other;
    assert_int_equal(take(f, "b", &other), VIEW_LEASE_BUSY);
    assert_int_equal(view_lease_renew(f->redis, fence, "results", 5, 9, NULL), OK);
    assert_int_equal(take(f, "b", &other), VIEW_LEASE_BUSY);
    assert_int_equal(epoch(f), 0);
    assert_int_equal(view_lease_finish(f->redis, fence, 9, NULL), OK);
    assert_int_equal(epoch(f), fence);
    assert_int_equal(take(f, "b", &other), VIEW_LEASE_CONSISTENT);
}

static void a_silent_holder_is_replaced_and_cannot_set_the_epoch(void **state)
{
    struct redis_fixture *f = *state;
    struct why why;
    int64_t late = taken_by(f, "a");
    let_it_run_out(f);
    int64_t fence = taken_by(f, "b");
    assert_true(fence > late);
    assert_int_equal(view_lease_renew(f->redis, late, "results", 1, 9, &why), ERR_REFUSE);
    assert_int_equal(view_lease_finish(f->redis, late, 9, &why), ERR_REFUSE);
    assert_int_equal(epoch(f), 0);
    assert_int_equal(view_lease_finish(f->redis, fence, 9, &why), OK);
}

static void a_flush_takes_the_lease_along(void **state)
{
    struct redis_fixture *f = *state;
    int64_t before = taken_by(f, "a");
    command(f, REDIS_ARGS(STR_LIT("FLUSHALL")));
    assert_int_equal(view_lease_finish(f->redis, before, 9, NULL), ERR_REFUSE);
    assert_int_equal(epoch(f), 0);
    assert_true(taken_by(f, "a") > before);
    assert_int_equal(view_lease_finish(f->redis, before, 9, NULL), ERR_REFUSE);
    assert_int_equal(epoch(f), 0);
}

static void the_same_owner_takes_its_lease_again_with_a_new_fence(void **state)
{
    struct redis_fixture *f = *state;
    int64_t first = taken_by(f, "a"), second = taken_by(f, "a");
    assert_true(second > first);
    assert_int_equal(view_lease_renew(f->redis, first, "", 0, 0, NULL), ERR_REFUSE);
}

static void what_is_given_back_is_taken_at_once(void **state)
{
    struct redis_fixture *f = *state;
    int64_t fence = taken_by(f, "a");
    assert_int_equal(view_lease_release(f->redis, fence, NULL), OK);
    assert_int_equal(view_lease_finish(f->redis, fence, 0, NULL), ERR_REFUSE);
    taken_by(f, "b");
}

static void tools_see_how_far_it_is(void **state)
{
    struct redis_fixture *f = *state;
    struct view_rebuild r;
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_false(r.consistent);
    assert_string_equal(r.state, "");
    int64_t fence = taken_by(f, "host-1");
    assert_int_equal(view_lease_renew(f->redis, fence, "callbacks", 5, 9, NULL), OK);
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_string_equal(r.state, "running");
    assert_string_equal(r.phase, "callbacks");
    assert_string_equal(r.owner, "host-1");
    assert_int_equal(r.done, 5);
    assert_int_equal(r.total, 9);
    assert_true(r.started_ms > 0);
    assert_int_equal(view_lease_finish(f->redis, fence, 9, NULL), OK);
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_true(r.consistent);
    assert_string_equal(r.state, "done");
    assert_int_equal(r.done, 9);
    assert_true(r.ended_ms >= r.started_ms);
}

static void what_ran_out_is_told_to_be_held_by_nobody(void **state)
{
    struct redis_fixture *f = *state;
    struct view_rebuild r;
    taken_by(f, "a");
    let_it_run_out(f);
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_false(r.consistent);
    assert_string_equal(r.state, "waiting");
    taken_by(f, "b");
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_string_equal(r.state, "running");
}

static void a_dropped_epoch_asks_for_a_rebuild(void **state)
{
    struct redis_fixture *f = *state;
    struct view_rebuild r;
    assert_int_equal(view_lease_finish(f->redis, taken_by(f, "a"), 0, NULL), OK);
    assert_int_equal(view_epoch_drop(f->redis, NULL), OK);
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_false(r.consistent);
    assert_string_equal(r.state, "wanted");
    int64_t fence = taken_by(f, "b");
    assert_int_equal(view_epoch_drop(f->redis, NULL), OK); /* it has begun: nothing changes */
    assert_int_equal(view_rebuild_get(f->redis, &r, NULL), OK);
    assert_string_equal(r.state, "running");
    assert_int_equal(view_lease_finish(f->redis, fence, 0, NULL), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_holds_the_lease_until_it_sets_the_epoch, redis_fixture_empty),
        cmocka_unit_test_setup(a_silent_holder_is_replaced_and_cannot_set_the_epoch,
                               redis_fixture_empty),
        cmocka_unit_test_setup(a_flush_takes_the_lease_along, redis_fixture_empty),
        cmocka_unit_test_setup(the_same_owner_takes_its_lease_again_with_a_new_fence,
                               redis_fixture_empty),
        cmocka_unit_test_setup(what_is_given_back_is_taken_at_once, redis_fixture_empty),
        cmocka_unit_test_setup(tools_see_how_far_it_is, redis_fixture_empty),
        cmocka_unit_test_setup(what_ran_out_is_told_to_be_held_by_nobody, redis_fixture_empty),
        cmocka_unit_test_setup(a_dropped_epoch_asks_for_a_rebuild, redis_fixture_empty),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

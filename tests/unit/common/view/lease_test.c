/* Against a real redis-server of its own: the rules live in Lua. What is leased of a set:
 * due_test.c, overdue_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/view/lease.h"
#include "tests/unit/support/lease_runs_out.h"
#include "tests/unit/support/redis_fixture.h"

static int64_t take(struct redis_fixture *f, const char *member)
{
    int64_t expires_ms = -1;
    assert_int_equal(lease_take(f->redis, LEASE_COMMENT, str_of(member), &expires_ms, NULL), OK);
    return expires_ms;
}

static void finish(struct redis_fixture *f, const char *member, int64_t expires_ms)
{
    assert_int_equal(lease_finish(f->redis, LEASE_COMMENT, str_of(member), expires_ms, 0, NULL),
                     OK);
}

static void one_at_a_time_has_it(void **state)
{
    struct redis_fixture *f = *state;
    int64_t mine = take(f, "7/org/a"), now_ms = clock_wall_ms();
    assert_in_range(mine - now_ms, 110000, 120000);
    assert_int_equal(take(f, "7/org/a"), 0);
    assert_true(take(f, "8/org/a") > 0);
    finish(f, "7/org/a", mine);
    assert_true(take(f, "7/org/a") > 0);
}

static void who_was_late_ends_no_lease_of_another(void **state)
{
    struct redis_fixture *f = *state;
    int64_t late = take(f, "7/org/a");
    leases_end_in(f->redis, "comment", -1);
    int64_t mine = take(f, "7/org/a");
    assert_true(mine > 0);
    finish(f, "7/org/a", late - 1); /* the two may have begun in the same millisecond here */
    assert_int_equal(take(f, "7/org/a"), 0);
    finish(f, "7/org/a", mine);
    assert_true(take(f, "7/org/a") > 0);
}

static void a_lease_is_of_its_own_kind(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    const struct redis_value *v;
    assert_true(take(f, "a/b") > 0);
    assert_int_equal(
        redis_call(f->redis, &v,
                   REDIS_ARGS(STR_LIT("ZADD"), STR_LIT("due"), STR_LIT("5"), STR_LIT("a/b")), NULL),
        OK);
    assert_int_equal(lease_take_due(f->redis, LEASE_DUE, 5, 10, &list, NULL), OK);
    assert_int_equal(list.members.n, 1);
    leases_clear(&list);
    assert_int_equal(lease_take_due(f->redis, LEASE_DUE, 5, 10, &list, NULL), OK);
    assert_int_equal(list.members.n, 0);
    assert_int_equal(list.past, 1);
    leases_clear(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_at_a_time_has_it, redis_fixture_consistent),
        cmocka_unit_test_setup(who_was_late_ends_no_lease_of_another, redis_fixture_consistent),
        cmocka_unit_test_setup(a_lease_is_of_its_own_kind, redis_fixture_consistent),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

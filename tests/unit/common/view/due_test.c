/* Against a real redis-server of its own: the rules live in Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/view/due.h"
#include "common/view/keys.h"
#include "common/view/lease.h"
#include "tests/unit/support/lease_runs_out.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW 1795231200000LL

static void note(struct redis_fixture *f, const char *member, int64_t at_ms)
{
    assert_int_equal(due_set(f->redis, str_of(member), at_ms, NULL), OK);
}

static size_t take_at(struct redis_fixture *f, int64_t now_ms, struct leases *list)
{
    assert_int_equal(lease_take_due(f->redis, LEASE_DUE, now_ms, 100, list, NULL), OK);
    assert_true(list->past >= (int64_t)list->members.n);
    return list->members.n;
}

static void finish(struct redis_fixture *f, const struct leases *list)
{
    assert_int_equal(lease_finish(f->redis, LEASE_DUE, str_of(list->members.at[0].name),
                                  list->expires_ms, list->members.at[0].at_ms, NULL),
                     OK);
}

static size_t count_at(struct redis_fixture *f, int64_t now_ms)
{
    struct leases list;
    size_t n = take_at(f, now_ms, &list);
    leases_clear(&list);
    return n;
}

static void only_what_is_due_is_taken_earliest_first(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    note(f, "a/late", NOW);
    note(f, "a/later", NOW + 1);
    note(f, "a/latest", NOW - 5);
    assert_int_equal(take_at(f, NOW, &list), 2);
    assert_string_equal(list.members.at[0].name, "a/latest");
    assert_string_equal(list.members.at[1].name, "a/late");
    leases_clear(&list);
}

static void two_sweepers_never_take_the_same(void **state)
{
    struct redis_fixture *f = *state;
    note(f, "a/late", NOW);
    assert_int_equal(count_at(f, NOW), 1);
    assert_int_equal(count_at(f, NOW + 10), 0);
    leases_end_in(f->redis, "due", 60000);
    assert_int_equal(count_at(f, NOW + 10), 0);
}

static void what_a_dead_sweeper_took_is_taken_again(void **state)
{
    struct redis_fixture *f = *state;
    note(f, "a/late", NOW);
    assert_int_equal(count_at(f, NOW), 1);
    leases_end_in(f->redis, "due", -1);
    assert_int_equal(count_at(f, NOW), 1);
}

static void what_was_marked_is_off(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    note(f, "a/late", NOW);
    take_at(f, NOW, &list);
    finish(f, &list);
    finish(f, &list);
    leases_clear(&list);
    assert_int_equal(count_at(f, NOW), 0);
}

static void a_time_noted_while_it_was_taken_is_not_lost(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    note(f, "a/late", NOW);
    take_at(f, NOW, &list);
    note(f, "a/late", NOW); /* also when it is the same as before */
    finish(f, &list);
    leases_clear(&list);
    assert_int_equal(count_at(f, NOW), 1);
}

static void a_newer_time_stands_in_for_the_older_and_0_for_none(void **state)
{
    struct redis_fixture *f = *state;
    note(f, "a/late", NOW);
    note(f, "a/late", NOW + 10);
    assert_int_equal(count_at(f, NOW), 0);
    note(f, "a/late", 0);
    assert_int_equal(count_at(f, NOW + 10), 0);
}

static void nothing_is_taken_while_the_view_is_rebuilt(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    note(f, "a/late", NOW);
    assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("DEL"), STR_LIT("epoch")), NULL),
                     OK);
    assert_int_equal(count_at(f, NOW), 0);
    assert_int_equal(consistent_view(f->redis), 0);
    assert_int_equal(count_at(f, NOW), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_what_is_due_is_taken_earliest_first, redis_fixture_consistent),
        cmocka_unit_test_setup(two_sweepers_never_take_the_same, redis_fixture_consistent),
        cmocka_unit_test_setup(what_a_dead_sweeper_took_is_taken_again, redis_fixture_consistent),
        cmocka_unit_test_setup(what_was_marked_is_off, redis_fixture_consistent),
        cmocka_unit_test_setup(a_time_noted_while_it_was_taken_is_not_lost,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_newer_time_stands_in_for_the_older_and_0_for_none,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(nothing_is_taken_while_the_view_is_rebuilt,
                               redis_fixture_consistent),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

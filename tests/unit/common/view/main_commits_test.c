/* Against a real redis-server of its own: the order of main's commits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/view/commits.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW_S 1795231200

static const struct view_times times = { .ttl_s = 3000 };

static void fold(struct redis_fixture *f, const struct push *push)
{
    assert_int_equal(main_fold_queue(f->redis, push, &times, NULL), OK);
    assert_int_equal(view_fold_collect(f->redis, NULL), OK);
}

/* The commits as they are kept, a letter each, newest first. */
static void assert_order(struct redis_fixture *f, const char *letters)
{
    struct main_list list;
    char found[64] = "";
    assert_int_equal(main_commits_get(f->redis, &list, NULL), OK);
    for (size_t i = 0; i < list.n && i + 1 < sizeof(found); i++)
        found[i] = list.at[i].commit.sha[0];
    assert_string_equal(found, letters);
    main_list_clear(&list);
}

static struct push_commit commit(char letter, char parent, const char *title)
{
    struct push_commit c = { .pr = letter };
    memset(c.sha, letter, 40);
    memset(c.parent, parent, 40);
    strcpy(c.title, title);
    return c;
}

/* a, then b and c in one push, then d, in the same second as these. */
static void pushes_end_in_one_order_whatever_theirs(void **state)
{
    struct redis_fixture *f = *state;
    static const int orders[][4] = { { 0, 1, 2, 1 }, { 2, 1, 0, 2 }, { 1, 0, 2, 0 } };
    struct push_commit a = commit('a', '0', "A title"), d = commit('d', 'c', "");
    struct push_commit bc[] = { commit('b', 'a', "B"), commit('c', 'b', "C") };
    const struct push pushes[] = { { NOW_S, &a, 1 }, { NOW_S + 1, bc, 2 }, { NOW_S + 1, &d, 1 } };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        assert_int_equal(redis_fixture_consistent(state), 0);
        for (size_t k = 0; k < 4; k++)
            fold(f, &pushes[orders[i][k]]);
        assert_order(f, "dcba");
    }
    struct main_list list;
    assert_int_equal(main_commits_get(f->redis, &list, NULL), OK);
    assert_string_equal(list.at[3].commit.title, "A title");
    assert_int_equal(list.at[3].commit.pr, 'a');
    assert_int_equal(list.at[3].pushed_ms, NOW_S * 1000LL);
    assert_string_equal(list.at[0].commit.title, "");
    main_list_clear(&list);
}

static void the_newest_thousand_are_kept(void **state)
{
    struct redis_fixture *f = *state;
    static struct push_commit many[1500];
    struct push_commit newest = commit('f', '0', "newest");
    struct main_list list;
    for (size_t i = 0; i < 1500; i++)
        snprintf(many[i].sha, sizeof(many[i].sha), "%040zu", i);
    fold(f, &(const struct push){ NOW_S + 5, &newest, 1 });
    fold(f, &(const struct push){ NOW_S, many, 1500 });
    assert_int_equal(main_commits_get(f->redis, &list, NULL), OK);
    assert_int_equal(list.n, 1000);
    assert_string_equal(list.at[0].commit.sha, newest.sha);
    assert_string_equal(list.at[1].commit.sha, many[1499].sha);
    assert_string_equal(list.at[999].commit.sha, many[501].sha);
    main_list_clear(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pushes_end_in_one_order_whatever_theirs, redis_fixture_consistent),
        cmocka_unit_test_setup(the_newest_thousand_are_kept, redis_fixture_consistent),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

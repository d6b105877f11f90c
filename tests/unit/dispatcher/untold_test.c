/* Against a real redis-server of its own: the order of seqs is judged in Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/view/claims.h"
#include "dispatcher/untold.h"
#include "tests/unit/support/redis_fixture.h"

#define LANE STR_LIT("Org/A|pytorch/pytorch#17")

static const struct task_seq older = { 1000, 2, 5 }, newer = { 2000, 2, 6 },
                             newest = { 3000, 2, 7 };

static enum claim_verdict claim(struct redis_fixture *f, const char *delivery, struct task_seq seq)
{
    struct task task = { .event = { .kind = EVENT_PULL_REQUEST,
                                    .delivery = str_of(delivery),
                                    .received_ms = 1795231200000LL,
                                    .pr = 17 },
                         .repo = STR_LIT("Org/A"),
                         .level = 2,
                         .kind = TASK_DISPATCH,
                         .attempt = 1,
                         .seq = seq,
                         .lane = LANE };
    struct claim_answer answer = { 0 };
    struct why why;
    if (claim_queue(f->redis, &task, "one", 1, true, &why) ||
        claim_collect(f->redis, &answer, &why))
        fail_msg("%s", why.text);
    return answer.verdict;
}

static void an_older_one_of_the_lane_is_known_and_of_another_not(void **state)
{
    struct untold *u = untold_new();
    (void)state;
    assert_false(untold_is_later(u, LANE, &older));
    untold_put(u, LANE, &newer);
    untold_put(u, LANE, &older);
    assert_int_equal(untold_count(u), 1);
    assert_true(untold_is_later(u, LANE, &older));
    assert_false(untold_is_later(u, LANE, &newer)); /* itself, once more */
    assert_false(untold_is_later(u, LANE, &newest));
    assert_false(untold_is_later(u, STR_LIT("Org/A|pytorch/pytorch#18"), &older));
    untold_free(u);
}

static void redis_learns_it_and_supersedes_what_is_older(void **state)
{
    struct untold *u = untold_new();
    untold_put(u, LANE, &newer);
    assert_int_equal(untold_tell(u, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(untold_count(u), 0);
    assert_int_equal(claim(*state, "d-1", older), CLAIM_SUPERSEDED);
    assert_int_equal(claim(*state, "d-2", newer), CLAIM_TAKEN);
    untold_free(u);
}

static void a_later_one_that_redis_has_stays(void **state)
{
    struct untold *u = untold_new();
    assert_int_equal(claim(*state, "d-1", newest), CLAIM_TAKEN);
    untold_put(u, LANE, &older);
    assert_int_equal(untold_tell(u, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(claim(*state, "d-2", newer), CLAIM_SUPERSEDED);
    untold_free(u);
}

static void put_many(struct untold *u, int n)
{
    char lane[64];
    for (int i = 0; i < n; i++) {
        snprintf(lane, sizeof(lane), "Org/A|pytorch/pytorch#%d", i);
        untold_put(u, str_of(lane), &newer);
    }
}

static void many_are_told_at_once_and_all(void **state)
{
    struct untold *u = untold_new();
    put_many(u, 700);
    assert_int_equal(untold_tell(u, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(untold_count(u), 0);
    assert_int_equal(claim(*state, "d-1", older), CLAIM_SUPERSEDED);
    untold_free(u);
}

static void the_lane_that_came_first_goes_when_there_is_no_room(void **state)
{
    struct untold *u = untold_new();
    (void)state;
    put_many(u, UNTOLD_MAX + 1);
    assert_int_equal(untold_count(u), UNTOLD_MAX);
    assert_false(untold_is_later(u, STR_LIT("Org/A|pytorch/pytorch#0"), &older));
    assert_true(untold_is_later(u, STR_LIT("Org/A|pytorch/pytorch#1"), &older));
    untold_free(u);
}

/* The last test: there is no Redis after it. */
static void nothing_is_forgotten_while_redis_is_away(void **state)
{
    struct redis_fixture *f = *state;
    struct untold *u = untold_new();
    struct why why;
    redis_server_kill(&f->server);
    untold_put(u, LANE, &newer);
    assert_int_not_equal(untold_tell(u, f->redis, &why), OK);
    assert_int_not_equal(untold_tell(u, f->redis, &why), OK);
    assert_int_equal(untold_count(u), 1);
    untold_free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_one_of_the_lane_is_known_and_of_another_not),
        cmocka_unit_test_setup(redis_learns_it_and_supersedes_what_is_older, redis_fixture_whole),
        cmocka_unit_test_setup(a_later_one_that_redis_has_stays, redis_fixture_whole),
        cmocka_unit_test_setup(many_are_told_at_once_and_all, redis_fixture_whole),
        cmocka_unit_test(the_lane_that_came_first_goes_when_there_is_no_room),
        cmocka_unit_test(nothing_is_forgotten_while_redis_is_away),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

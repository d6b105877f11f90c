/* Against a real redis-server of its own: the order of seqs is judged in Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/view/claims.h"
#include "dispatcher/called.h"
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
    struct called *c = called_new();
    (void)state;
    assert_false(called_is_later(c, LANE, &older));
    called_put(c, LANE, &newer, STR_LIT("d-newer"), false);
    called_put(c, LANE, &older, STR_LIT("d-older"), false);
    assert_int_equal(called_count(c), 1);
    assert_true(called_is_later(c, LANE, &older));
    assert_false(called_is_later(c, LANE, &newer)); /* itself, once more */
    assert_false(called_is_later(c, LANE, &newest));
    assert_false(called_is_later(c, STR_LIT("Org/A|pytorch/pytorch#18"), &older));
    called_free(c);
}

static void redis_learns_it_and_supersedes_what_is_older(void **state)
{
    struct called *c = called_new();
    called_put(c, LANE, &newer, STR_LIT("d-newer"), false);
    assert_int_equal(called_tell(c, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(called_untold(c), 0);
    assert_int_equal(claim(*state, "d-1", older), CLAIM_SUPERSEDED);
    assert_int_equal(claim(*state, "d-2", newer), CLAIM_TAKEN);
    called_free(c);
}

static void a_later_one_that_redis_has_stays(void **state)
{
    struct called *c = called_new();
    assert_int_equal(claim(*state, "d-1", newest), CLAIM_TAKEN);
    called_put(c, LANE, &older, STR_LIT("d-older"), false);
    assert_int_equal(called_tell(c, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(claim(*state, "d-2", newer), CLAIM_SUPERSEDED);
    called_free(c);
}

static void put_many(struct called *c, int n)
{
    char lane[64];
    for (int i = 0; i < n; i++) {
        snprintf(lane, sizeof(lane), "Org/A|pytorch/pytorch#%d", i);
        called_put(c, str_of(lane), &newer, STR_LIT("d-newer"), false);
    }
}

static void many_are_told_at_once_and_all(void **state)
{
    struct called *c = called_new();
    put_many(c, 700);
    assert_int_equal(called_tell(c, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(called_untold(c), 0);
    assert_int_equal(claim(*state, "d-1", older), CLAIM_SUPERSEDED);
    called_free(c);
}

static void the_lane_that_came_first_goes_when_there_is_no_room(void **state)
{
    struct called *c = called_new();
    (void)state;
    put_many(c, CALLED_MAX + 1);
    assert_int_equal(called_count(c), CALLED_MAX);
    assert_int_equal(called_untold(c), CALLED_MAX);
    assert_false(called_is_later(c, STR_LIT("Org/A|pytorch/pytorch#0"), &older));
    assert_true(called_is_later(c, STR_LIT("Org/A|pytorch/pytorch#1"), &older));
    called_free(c);
}

static void what_redis_knows_is_remembered_and_not_told(void **state)
{
    struct called *c = called_new();
    called_put(c, LANE, &older, STR_LIT("d-older"), false);
    called_put(c, LANE, &newer, STR_LIT("d-newer"),
               true); /* with a claim: Redis has the later one */
    assert_int_equal(called_untold(c), 0);
    assert_true(called_is_later(c, LANE, &older));
    assert_int_equal(called_tell(c, ((struct redis_fixture *)*state)->redis, NULL), OK);
    assert_int_equal(claim(*state, "d-1", older), CLAIM_TAKEN);
    called_free(c);
}

static void what_became_of_a_delivery_is_known_of_the_last_ones_of_its_lane(void **state)
{
    const struct str a = STR_LIT("d-a"), b = STR_LIT("d-b");
    struct called *c = called_new();
    (void)state;
    called_put(c, LANE, &older, a, true);
    assert_int_equal(called_how(c, LANE, a), CALLED_NOT);
    called_ended(c, LANE, a, CALLED_MAYBE);
    assert_int_equal(called_how(c, LANE, a), CALLED_MAYBE);
    called_ended(c, LANE, a, CALLED_SENT);
    called_ended(c, LANE, a, CALLED_MAYBE); /* its twin's end */
    assert_int_equal(called_how(c, LANE, a), CALLED_SENT);
    assert_int_equal(called_how(c, LANE, b), CALLED_NOT);
    assert_int_equal(called_how(c, STR_LIT("Org/A|pytorch/pytorch#18"), a), CALLED_NOT);
    called_put(c, LANE, &newer, a, false); /* GitHub sent the webhook once more */
    assert_int_equal(called_how(c, LANE, a), CALLED_SENT);
    assert_false(called_is_later(c, LANE, &newer));
    called_put(c, LANE, &newest, b, true);
    assert_int_equal(called_how(c, LANE, a), CALLED_SENT); /* its twin may be behind b */
    assert_int_equal(called_how(c, LANE, b), CALLED_NOT);
    called_ended(c, LANE, b, CALLED_MAYBE); /* an answer that came late */
    called_put(c, LANE, &older, STR_LIT("d-older"), true);
    assert_int_equal(called_how(c, LANE, b), CALLED_MAYBE);
    assert_true(called_is_later(c, LANE, &newer));
    called_free(c);
}

static void of_many_deliveries_of_a_lane_the_one_called_longest_ago_goes(void **state)
{
    const struct str first = STR_LIT("d-0"), second = STR_LIT("d-1");
    struct called *c = called_new();
    char delivery[16];
    (void)state;
    for (int i = 0; i <= CALLED_IN_LANE; i++) {
        snprintf(delivery, sizeof(delivery), "d-%d", i);
        called_put(c, LANE, &newer, str_of(delivery), true);
        called_ended(c, LANE, str_of(delivery), CALLED_SENT);
        if (i == CALLED_IN_LANE - 1)
            called_put(c, LANE, &newer, first, true); /* once more: d-1 goes */
    }
    assert_int_equal(called_how(c, LANE, first), CALLED_SENT);
    assert_int_equal(called_how(c, LANE, second), CALLED_NOT);
    assert_int_equal(called_how(c, LANE, str_of(delivery)), CALLED_SENT);
    assert_int_equal(called_count(c), 1);
    called_free(c);
}

static void what_was_called_in_again_is_not_the_first_to_go(void **state)
{
    struct called *c = called_new();
    (void)state;
    put_many(c, CALLED_MAX);
    put_many(c, 1); /* number 0 */
    called_put(c, STR_LIT("Org/B|pytorch/pytorch#1"), &newer, STR_LIT("d-newer"), true);
    assert_true(called_is_later(c, STR_LIT("Org/A|pytorch/pytorch#0"), &older));
    assert_false(called_is_later(c, STR_LIT("Org/A|pytorch/pytorch#1"), &older));
    called_free(c);
}

/* The last test: there is no Redis after it. */
static void nothing_is_forgotten_while_redis_is_away(void **state)
{
    struct redis_fixture *f = *state;
    struct called *c = called_new();
    struct why why;
    redis_server_kill(&f->server);
    called_put(c, LANE, &newer, STR_LIT("d-newer"), false);
    assert_int_not_equal(called_tell(c, f->redis, &why), OK);
    assert_int_not_equal(called_tell(c, f->redis, &why), OK);
    assert_int_equal(called_untold(c), 1);
    called_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_one_of_the_lane_is_known_and_of_another_not),
        cmocka_unit_test_setup(redis_learns_it_and_supersedes_what_is_older, redis_fixture_whole),
        cmocka_unit_test_setup(a_later_one_that_redis_has_stays, redis_fixture_whole),
        cmocka_unit_test_setup(many_are_told_at_once_and_all, redis_fixture_whole),
        cmocka_unit_test(the_lane_that_came_first_goes_when_there_is_no_room),
        cmocka_unit_test_setup(what_redis_knows_is_remembered_and_not_told, redis_fixture_whole),
        cmocka_unit_test(what_became_of_a_delivery_is_known_of_the_last_ones_of_its_lane),
        cmocka_unit_test(of_many_deliveries_of_a_lane_the_one_called_longest_ago_goes),
        cmocka_unit_test(what_was_called_in_again_is_not_the_first_to_go),
        cmocka_unit_test(nothing_is_forgotten_while_redis_is_away),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

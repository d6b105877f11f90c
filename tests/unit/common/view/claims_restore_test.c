/* What outcomes say of claims that Redis lost, or never had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claims_fixture.h"

static bool restore(struct redis_fixture *f, const struct outcome *outcome, int64_t age_ms)
{
    bool queued = false;
    struct why why;
    if (claim_restore_queue(f->redis, outcome, age_ms, &queued, &why) ||
        (queued && claim_end_collect(f->redis, &why)))
        fail_msg("%s", why.text);
    return queued;
}

/* As if it had been read from the topic. */
static struct outcome of_topic(const struct outcome *outcome)
{
    struct buf CLEANUP(buf_clear) json;
    struct outcome read;
    buf_init(&json, 8192);
    outcome_to_json(outcome, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &read, NULL), OK);
    return read;
}

static void what_was_sent_is_not_sent_again_after_a_flush(void **state)
{
    struct task task = a_task();
    struct dispatch_record record;
    bool found = false;
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED), outcome = of_topic(&sent);
    assert_true(restore(*state, &outcome, 1000));
    struct claim_answer answer = claim(state, &task, "one", NOW);
    assert_int_equal(answer.verdict, CLAIM_DONE);
    assert_int_equal(answer.call.at_ms, NOW + 7);
    assert_int_equal(answer.call.http_status, 204);
    assert_int_equal(answer.call.attempt, 1);
    assert_int_equal(dispatch_record_get(((struct redis_fixture *)*state)->redis, STR_LIT("d-1"),
                                         STR_LIT("org/a"), &found, &record, NULL),
                     OK);
    assert_true(found);
    assert_int_equal(record.dispatched_ms, NOW + 7);
    assert_int_equal(record.pr, 17);
}

static void an_older_state_stays_superseded_after_a_flush(void **state)
{
    struct task task = a_task(), older = a_task(), newer = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED), outcome = of_topic(&sent);
    older.event.delivery = STR_LIT("d-0");
    older.seq.updated_ms--;
    newer.event.delivery = STR_LIT("d-2");
    newer.seq.updated_ms++;
    struct outcome before = an_outcome(&older, OUTCOME_DISPATCHED);
    assert_true(restore(*state, &outcome, 1000));
    assert_true(restore(*state, &before, 1000)); /* other partitions may be read later */
    older.event.delivery = STR_LIT("d-3");
    assert_int_equal(claim(state, &older, "one", NOW).verdict, CLAIM_SUPERSEDED);
    assert_int_equal(claim(state, &newer, "one", NOW).verdict, CLAIM_TAKEN);
}

static void the_newest_outcome_of_a_lane_counts_also_when_it_is_read_last(void **state)
{
    struct task task = a_task(), older = a_task();
    older.event.delivery = STR_LIT("d-0");
    older.seq.updated_ms--;
    struct outcome before = an_outcome(&older, OUTCOME_DISPATCHED);
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    assert_true(restore(*state, &before, 1000));
    assert_true(restore(*state, &sent, 1000));
    older.event.delivery = STR_LIT("d-3");
    assert_int_equal(claim(state, &older, "one", NOW).verdict, CLAIM_SUPERSEDED);
}

static void what_was_perhaps_sent_is_known_to_be_so_after_a_flush(void **state)
{
    struct task task = a_task();
    struct outcome unknown = an_outcome(&task, OUTCOME_UNKNOWN);
    struct outcome waiting = an_outcome(&task, OUTCOME_WAITING);
    assert_false(restore(*state, &waiting, 0));
    waiting.maybe_duplicate = MARK_ANSWER_UNSEEN;
    assert_true(restore(*state, &unknown, 0));
    assert_true(restore(*state, &waiting, 0));
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_EXPIRED);
}

static void what_was_replayed_again_is_not_sent_once_more_after_a_flush(void **state)
{
    struct task again = a_task(), plain = a_task();
    again.event.again = STR_LIT("one");
    struct outcome sent = an_outcome(&again, OUTCOME_DISPATCHED);
    assert_true(restore(*state, &sent, 0));
    assert_int_equal(claim(state, &again, "two", NOW).verdict, CLAIM_DONE);
    assert_int_equal(claim(state, &plain, "two", NOW).verdict, CLAIM_TAKEN);
}

static void a_restored_claim_takes_nothing_from_its_sender(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome unknown = an_outcome(&task, OUTCOME_UNKNOWN);
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    claim(state, &task, "one", sent.at_ms + 1); /* that was another's call before */
    restore(f, &sent, 0);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_BUSY);
    assert_int_equal(finish(f, &task, "one", &sent), OK);
    restore(f, &unknown, 0);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_DONE);
}

/* Redis was unavailable when its sender would have stored that the call was answered. */
static void a_claim_that_ran_out_is_done_when_its_outcome_says_so(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome unknown = an_outcome(&task, OUTCOME_UNKNOWN);
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    claim(state, &task, "one", NOW);
    let_it_run_out(f);
    restore(f, &unknown, 0);
    restore(f, &sent, 0);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_DONE);
}

static void a_claim_is_done_when_the_outcome_of_a_call_after_it_says_so(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    claim(state, &task, "one", sent.at_ms - 100);
    restore(f, &sent, 0);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_DONE);
    assert_int_equal(finish(f, &task, "one", &sent), ERR_REFUSE); /* its owner says no more */
}

static void only_what_a_claim_would_still_hold_is_restored(void **state)
{
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    struct outcome failed = an_outcome(&task, OUTCOME_SKIPPED);
    struct outcome rerun = an_outcome(&task, OUTCOME_DISPATCHED);
    strcpy(rerun.kind, "rerun_all"); /* of a record that did not name the run yet */
    assert_false(restore(*state, &sent, 7LL * 86400 * 1000));
    assert_false(restore(*state, &failed, 0));
    assert_false(restore(*state, &rerun, 0));
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, redis_fixture_consistent)
    const struct CMUnitTest tests[] = {
        TEST(what_was_sent_is_not_sent_again_after_a_flush),
        TEST(an_older_state_stays_superseded_after_a_flush),
        TEST(the_newest_outcome_of_a_lane_counts_also_when_it_is_read_last),
        TEST(what_was_perhaps_sent_is_known_to_be_so_after_a_flush),
        TEST(what_was_replayed_again_is_not_sent_once_more_after_a_flush),
        TEST(a_restored_claim_takes_nothing_from_its_sender),
        TEST(a_claim_that_ran_out_is_done_when_its_outcome_says_so),
        TEST(a_claim_is_done_when_the_outcome_of_a_call_after_it_says_so),
        TEST(only_what_a_claim_would_still_hold_is_restored),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claims_fixture.h"

static enum err release(struct redis_fixture *f, const struct task *task, const char *owner)
{
    assert_int_equal(claim_release_queue(f->redis, task, owner, NULL), OK);
    return claim_end_collect(f->redis, NULL);
}

static void the_first_takes_it_and_another_finds_it_busy(void **state)
{
    struct task task = a_task();
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
    struct claim_answer busy = claim(state, &task, "two", NOW + 1);
    assert_int_equal(busy.verdict, CLAIM_BUSY);
    assert_in_range(busy.wait_ms, 1, CLAIM_SENDING_MS);
    assert_int_equal(claim(state, &task, "one", NOW + 2).verdict, CLAIM_TAKEN);
}

static void case_of_the_repo_does_not_matter(void **state)
{
    struct task task = a_task(), other = a_task();
    other.repo = STR_LIT("org/a");
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(claim(state, &other, "two", NOW).verdict, CLAIM_BUSY);
}

static void another_kind_or_run_is_another_claim(void **state)
{
    struct task task = a_task(), rerun = a_task();
    rerun.kind = TASK_RERUN_FAILED;
    rerun.run_id = STR_LIT("9");
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(claim(state, &rerun, "two", NOW).verdict, CLAIM_TAKEN);
    rerun.run_id = STR_LIT("10");
    assert_int_equal(claim(state, &rerun, "three", NOW).verdict, CLAIM_TAKEN);
}

static void a_replay_again_is_sent_once_more_and_only_once(void **state)
{
    struct task task = a_task(), again = a_task(), later = a_task();
    struct outcome outcome = an_outcome(&task, OUTCOME_DISPATCHED);
    again.event.again = STR_LIT("one");
    later.event.again = STR_LIT("two");
    assert_int_equal(claim(state, &task, "a", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(finish(*state, &task, "a", &outcome), OK);
    assert_int_equal(claim(state, &again, "c", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(finish(*state, &again, "c", &outcome), OK);
    assert_int_equal(claim(state, &again, "e", NOW).verdict, CLAIM_DONE);
    assert_int_equal(claim(state, &later, "f", NOW).verdict, CLAIM_TAKEN);
}

static void an_owner_that_never_told_is_perhaps_a_first_call(void **state)
{
    struct task task = a_task();
    claim(state, &task, "one", NOW);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_BUSY);
    let_it_run_out(*state);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_EXPIRED);
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_BUSY);
}

/* Ten minutes either way: neither a live claim taken for expired, nor a wait of ten minutes. */
static void the_clock_of_a_replica_does_not_matter(void **state)
{
    static const int64_t skew_ms[] = { -600000, 600000 };
    for (size_t i = 0; i < 2; i++) {
        struct task task = a_task();
        assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
        struct claim_answer busy = claim(state, &task, "two", NOW + skew_ms[i]);
        assert_int_equal(busy.verdict, CLAIM_BUSY);
        assert_in_range(busy.wait_ms, 1, CLAIM_SENDING_MS);
        assert_int_equal(redis_fixture_consistent(state), OK);
        assert_int_equal(claim(state, &task, "one", NOW + skew_ms[i]).verdict, CLAIM_TAKEN);
        busy = claim(state, &task, "two", NOW);
        assert_int_equal(busy.verdict, CLAIM_BUSY);
        assert_in_range(busy.wait_ms, 1, CLAIM_SENDING_MS);
        assert_int_equal(redis_fixture_consistent(state), OK);
    }
}

static void what_was_sent_is_told_again_and_not_sent_again(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    sent.attempt = 2;
    sent.maybe_duplicate = MARK_ANSWER_UNSEEN;
    claim(state, &task, "one", NOW);
    assert_int_equal(finish(f, &task, "one", &sent), OK);
    struct claim_answer again = claim(state, &task, "two", NOW + 10 * CLAIM_SENDING_MS);
    assert_int_equal(again.verdict, CLAIM_DONE);
    assert_int_equal(again.call.at_ms, NOW + 7);
    assert_int_equal(again.call.http_status, 204);
    assert_int_equal(again.call.attempt, 2);
    assert_int_equal(again.call.maybe_duplicate, MARK_ANSWER_UNSEEN);
}

/* Whoever calls a second time, its claim having run out, changes nothing of the first call. */
static void what_is_done_stays_as_it_is(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    claim(state, &task, "one", NOW);
    assert_int_equal(finish(f, &task, "one", &sent), OK);
    sent.at_ms++;
    assert_int_equal(finish(f, &task, "one", &sent), ERR_REFUSE);
    assert_int_equal(finish(f, &task, "two", &sent), ERR_REFUSE);
    assert_int_equal(claim(state, &task, "x", NOW).call.at_ms, NOW + 7);
}

/* A question that led to nothing is answered. */
static void what_ends_without_a_call_is_done(void **state)
{
    struct task task = a_task();
    struct outcome nothing = an_outcome(&task, OUTCOME_SKIPPED);
    task.kind = TASK_EXPAND;
    task.run_id = STR_LIT("9");
    claim(state, &task, "one", NOW);
    assert_int_equal(finish(*state, &task, "one", &nothing), OK);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_DONE);
}

/* What was perhaps sent stays so, whatever a later attempt ended with. */
static void only_a_dispatch_makes_a_claim_done(void **state)
{
    static const enum outcome_kind kinds[] = { OUTCOME_UNKNOWN, OUTCOME_WAITING, OUTCOME_FAILED };
    struct redis_fixture *f = *state;
    struct task task = a_task();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct outcome outcome = an_outcome(&task, kinds[i]);
        claim(state, &task, "one", NOW);
        assert_int_equal(finish(f, &task, "one", &outcome), OK);
        assert_int_equal(claim(state, &task, "two", NOW + 1).verdict, CLAIM_EXPIRED);
        assert_int_equal(redis_fixture_consistent(state), OK);
    }
}

/* What another claim of the same task finds where the end says this of the call. */
static struct claim_call said(void **state, struct str text)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    const struct redis_value *v;
    claim(state, &task, "one", NOW);
    assert_int_equal(finish(f, &task, "one", &sent), OK);
    assert_int_equal(redis_call(f->redis, &v,
                                REDIS_ARGS(STR_LIT("HSET"), STR_LIT("claim:d-1|org/a|dispatch|"),
                                           STR_LIT("outcome"), text),
                                NULL),
                     OK);
    struct claim_answer again = claim(state, &task, "two", NOW);
    assert_int_equal(again.verdict, CLAIM_DONE);
    assert_int_equal(again.call.at_ms, NOW + 7);
    return again.call;
}

static void what_is_done_stays_done_when_its_outcome_cannot_be_read(void **state)
{
    static const char *const texts[] = { "{\"outcome\":", "", "204", "204 ", " ", "x y z" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(said(state, str_of(texts[i])).attempt, 0);
        assert_int_equal(redis_fixture_consistent(state), OK);
    }
}

static void the_outcome_that_a_dispatcher_of_before_stored_is_understood(void **state)
{
    struct buf CLEANUP(buf_clear) json = BUF_INIT(8192);
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    sent.attempt = 3;
    sent.maybe_duplicate = MARK_NO_CLAIM;
    outcome_to_json(&sent, &json);
    struct claim_call call = said(state, buf_str(&json));
    assert_int_equal(call.http_status, 204);
    assert_int_equal(call.attempt, 3);
    assert_int_equal(call.maybe_duplicate, MARK_NO_CLAIM);
}

static void a_missing_claim_proves_nothing_when_redis_was_emptied_since_the_event(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    assert_int_equal(redis_fixture_empty(state), OK);
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_FORGOTTEN);
    assert_int_equal(release(f, &task, "one"), OK);
    const struct redis_value *v; /* 1 ms later: what was lost is restored, but not this */
    const struct str epoch[] = { STR_LIT("SET"), STR_LIT("epoch"), STR_LIT("1795231200001000") };
    assert_int_equal(redis_call(f->redis, &v, 3, epoch, NULL), OK);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_FORGOTTEN);
    assert_int_equal(release(f, &task, "two"), OK);
    task.event.received_ms = NOW + 1;
    assert_int_equal(claim(state, &task, "three", NOW).verdict, CLAIM_TAKEN);
}

static void a_claim_that_is_there_counts_also_while_the_view_is_inconsistent(void **state)
{
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    assert_int_equal(redis_fixture_empty(state), OK);
    claim(state, &task, "one", NOW);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_BUSY);
    assert_int_equal(finish(*state, &task, "one", &sent), OK);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_DONE);
}

static void a_released_claim_leaves_nothing(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct dispatch_record record;
    bool found = true;
    claim(state, &task, "one", NOW);
    assert_int_equal(release(f, &task, "two"), ERR_REFUSE);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_BUSY);
    assert_int_equal(release(f, &task, "one"), OK);
    assert_int_equal(
        dispatch_record_get(f->redis, STR_LIT("d-1"), STR_LIT("org/a"), &found, &record, NULL), OK);
    assert_false(found);
    assert_int_equal(claim(state, &task, "two", NOW).verdict, CLAIM_TAKEN);
}

static void a_late_owner_cannot_end_what_another_is_sending_or_has_sent(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    struct outcome unknown = an_outcome(&task, OUTCOME_UNKNOWN);
    claim(state, &task, "one", NOW);
    let_it_run_out(f);
    claim(state, &task, "two", NOW);
    assert_int_equal(finish(f, &task, "one", &sent), ERR_REFUSE);
    assert_int_equal(finish(f, &task, "two", &sent), OK);
    assert_int_equal(finish(f, &task, "one", &unknown), ERR_REFUSE);
    assert_int_equal(claim(state, &task, "three", NOW).verdict, CLAIM_DONE);
}

static void the_end_of_a_call_without_a_claim_stores_its_outcome_and_its_seq(void **state)
{
    struct redis_fixture *f = *state;
    struct task newer = a_task(), older = a_task(), newest = a_task();
    struct outcome sent = an_outcome(&newer, OUTCOME_DISPATCHED);
    older.event.delivery = STR_LIT("d-0");
    older.seq.updated_ms--;
    newest.event.delivery = STR_LIT("d-2");
    newest.seq.updated_ms++;
    assert_int_equal(claim(state, &newest, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(finish(f, &newer, "two", &sent), OK); /* the later seq stays */
    assert_int_equal(claim(state, &newer, "three", NOW).verdict, CLAIM_DONE);
    newer.event.delivery = STR_LIT("d-3");
    assert_int_equal(claim(state, &newer, "three", NOW).verdict, CLAIM_SUPERSEDED);
    assert_int_equal(redis_fixture_consistent(state), OK);
    assert_int_equal(finish(f, &newer, "two", &sent), OK);
    assert_int_equal(claim(state, &older, "three", NOW).verdict, CLAIM_SUPERSEDED);
    assert_int_equal(claim(state, &newest, "three", NOW).verdict, CLAIM_TAKEN);
}

static void an_older_seq_of_the_lane_is_superseded_and_the_same_is_not(void **state)
{
    static const struct {
        struct task_seq seq;
        enum claim_verdict verdict;
    } table[] = {
        { { 1000, 2, 5 }, CLAIM_TAKEN },          { { 999, 2, 9 }, CLAIM_SUPERSEDED },
        { { 1000, 2, 4 }, CLAIM_SUPERSEDED },     { { 1000, 2, 5 }, CLAIM_TAKEN },
        { { 1000, 2, 10 }, CLAIM_TAKEN },         { { 1000, 2, 9 }, CLAIM_SUPERSEDED },
        { { 1795231200001, 0, 0 }, CLAIM_TAKEN }, { { 1795231200000, 11, 99 }, CLAIM_SUPERSEDED },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char delivery[8] = { 'd', (char)('a' + i), 0 };
        struct task task = a_task();
        task.event.delivery = str_of(delivery);
        task.seq = table[i].seq;
        assert_int_equal(claim(state, &task, "one", NOW).verdict, table[i].verdict);
    }
    struct task other = a_task(); /* another pull request is another lane */
    other.event_key = STR_LIT("pytorch/pytorch#18");
    other.seq = (struct task_seq){ 1, 0, 0 };
    assert_int_equal(claim(state, &other, "one", NOW).verdict, CLAIM_TAKEN);
}

/* It was not sent, and a later one waits that says the same; one that was sent stays done. */
static void what_is_overtaken_while_it_waits_is_superseded_unless_it_was_sent(void **state)
{
    struct redis_fixture *f = *state;
    struct claim_answer answer;
    struct task task = a_task(), push = a_task();
    struct outcome sent = an_outcome(&task, OUTCOME_DISPATCHED);
    assert_int_equal(claim_queue(f->redis, &task, "one", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_SUPERSEDED);
    assert_int_equal(claim(state, &task, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(finish(f, &task, "one", &sent), OK);
    assert_int_equal(claim_queue(f->redis, &task, "two", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_DONE);
    push.event.kind = EVENT_PUSH;
    push.event.delivery = STR_LIT("d-2");
    assert_int_equal(claim_queue(f->redis, &push, "one", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_TAKEN);
}

/* A sender died during the call, or its answer was not seen, or Redis was emptied since: the
 * downstream may run it, and says so under its name. */
static void what_may_have_been_called_is_not_overtaken(void **state)
{
    struct redis_fixture *f = *state;
    struct claim_answer answer;
    struct task died = a_task(), unseen = a_task(), emptied = a_task();
    unseen.event.delivery = STR_LIT("d-2");
    struct outcome unknown = an_outcome(&unseen, OUTCOME_UNKNOWN);
    emptied.event.delivery = STR_LIT("d-3");
    assert_int_equal(claim(state, &died, "one", NOW).verdict, CLAIM_TAKEN);
    let_it_run_out(f);
    assert_int_equal(claim_queue(f->redis, &died, "two", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_EXPIRED);
    assert_int_equal(claim(state, &unseen, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(finish(f, &unseen, "one", &unknown), OK);
    assert_int_equal(claim_queue(f->redis, &unseen, "one", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_EXPIRED);
    assert_int_equal(redis_fixture_empty(state), OK);
    assert_int_equal(claim_queue(f->redis, &emptied, "one", NOW, true, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_FORGOTTEN);
}

static void what_cannot_be_superseded_neither_asks_nor_moves_the_lane(void **state)
{
    struct redis_fixture *f = *state;
    struct claim_answer answer;
    struct task newer = a_task(), push = a_task(), older = a_task();
    newer.seq.updated_ms = 2000;
    push.event.kind = EVENT_PUSH;
    push.event.delivery = STR_LIT("d-2");
    push.seq = (struct task_seq){ 9000, 0, 1 };
    older.event.delivery = STR_LIT("d-3");
    older.seq.updated_ms = 3000;
    assert_int_equal(claim(state, &newer, "one", NOW).verdict, CLAIM_TAKEN);
    assert_int_equal(claim_queue(f->redis, &push, "one", NOW, false, NULL, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    assert_int_equal(answer.verdict, CLAIM_TAKEN);
    assert_int_equal(claim(state, &older, "one", NOW).verdict, CLAIM_TAKEN);
}

static void many_are_answered_in_the_order_of_queueing(void **state)
{
    struct redis_fixture *f = *state;
    struct task first = a_task(), second = a_task();
    struct claim_answer answer;
    second.event.delivery = STR_LIT("d-2");
    claim(state, &second, "other", NOW);
    assert_int_equal(claim_queue(f->redis, &first, "one", NOW, false, NULL, NULL), OK);
    assert_int_equal(claim_queue(f->redis, &second, "one", NOW, false, NULL, NULL), OK);
    assert_int_equal(claim_queue(f->redis, &first, "two", NOW, false, NULL, NULL), OK);
    static const enum claim_verdict verdicts[] = { CLAIM_TAKEN, CLAIM_BUSY, CLAIM_BUSY };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
        assert_int_equal(answer.verdict, verdicts[i]);
    }
}

static void the_record_is_there_before_the_call_for_a_fast_callback(void **state)
{
    struct redis_fixture *f = *state;
    struct task task = a_task();
    struct dispatch_record record;
    bool found = false;
    claim(state, &task, "one", NOW);
    assert_int_equal(
        dispatch_record_get(f->redis, STR_LIT("d-1"), STR_LIT("ORG/a"), &found, &record, NULL), OK);
    assert_true(found);
    assert_int_equal(record.pr, 17);
    assert_int_equal(record.dispatched_ms, NOW);
    assert_string_equal(record.head_sha, "abcdef0");
    assert_int_equal(
        dispatch_record_get(f->redis, STR_LIT("d-2"), STR_LIT("org/a"), &found, &record, NULL), OK);
    assert_false(found);
}

static void claims_do_not_stay_for_ever(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    struct task task = a_task();
    claim(state, &task, "one", NOW);
    static const char *const keys[] = { "claim:d-1|org/a|dispatch|",
                                        "seq:org/a|pytorch/pytorch#17" };
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("TTL"), str_of(keys[i])), NULL), OK);
        assert_true(v->integer > 604000 && v->integer <= 604800);
    }
}

static struct claim_answer claim_for(void **state, const struct task *task, const char *owner,
                                     struct budget_bill *bill)
{
    const struct budget_rules rules = { .limit = { [BUDGET_POINTS_MINUTE] = 40 }, .replicas = 1 };
    struct redis_fixture *f = *state;
    struct claim_answer answer = { 0 };
    budget_price(&rules, BUDGET_DISPATCH, BUDGET_AGGREGATE, -1, 0, &bill->ask);
    assert_int_equal(claim_queue(f->redis, task, owner, NOW, false, bill, NULL), OK);
    assert_int_equal(claim_collect(f->redis, &answer, NULL), OK);
    return answer;
}

/* 40 points a minute: 10 at once, and a dispatch costs 5. */
static void a_claim_takes_what_its_call_costs_or_neither(void **state)
{
    struct redis_fixture *f = *state;
    struct budget_bill bill = { .account = STR_LIT("org"), .downstream = STR_LIT("Org/A") };
    struct task first = a_task(), second = a_task(), third = a_task();
    second.event.delivery = STR_LIT("d-2");
    second.seq.updated_ms++;
    third.event.delivery = STR_LIT("d-3");
    third.seq.updated_ms += 2;
    struct claim_answer answer = claim_for(state, &first, "one", &bill);
    assert_int_equal(answer.verdict, CLAIM_TAKEN);
    assert_int_equal(answer.budget.wait_us, 0);
    assert_true(answer.budget.used_us[BUDGET_POINTS_MINUTE] > 0);
    /* What is called by another, or was sent, costs nothing. */
    assert_int_equal(claim_for(state, &first, "two", &bill).verdict, CLAIM_BUSY);
    const struct outcome sent = an_outcome(&first, OUTCOME_DISPATCHED);
    assert_int_equal(finish(f, &first, "one", &sent), OK);
    assert_int_equal(claim_for(state, &first, "two", &bill).verdict, CLAIM_DONE);
    assert_int_equal(claim_for(state, &second, "one", &bill).verdict, CLAIM_TAKEN);

    answer = claim_for(state, &third, "one", &bill);
    assert_int_equal(answer.verdict, CLAIM_UNPAID);
    assert_int_equal(answer.budget.bucket, BUDGET_POINTS_MINUTE);
    assert_true(answer.budget.wait_us > 0);
    /* No claim was taken, and the lane's last is still the second's. */
    const struct redis_value *v;
    assert_int_equal(redis_call(f->redis, &v,
                                REDIS_ARGS(STR_LIT("EXISTS"), STR_LIT("claim:d-3|org/a|dispatch|")),
                                NULL),
                     OK);
    assert_int_equal(v->integer, 0);
    struct task again = a_task();
    again.event.delivery = STR_LIT("d-4");
    again.seq.updated_ms++;
    assert_int_equal(claim(state, &again, "one", NOW).verdict, CLAIM_TAKEN);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, redis_fixture_consistent)
    const struct CMUnitTest tests[] = {
        TEST(the_first_takes_it_and_another_finds_it_busy),
        TEST(case_of_the_repo_does_not_matter),
        TEST(another_kind_or_run_is_another_claim),
        TEST(a_replay_again_is_sent_once_more_and_only_once),
        TEST(an_owner_that_never_told_is_perhaps_a_first_call),
        TEST(the_clock_of_a_replica_does_not_matter),
        TEST(what_was_sent_is_told_again_and_not_sent_again),
        TEST(what_is_done_stays_as_it_is),
        TEST(what_ends_without_a_call_is_done),
        TEST(only_a_dispatch_makes_a_claim_done),
        TEST(what_is_done_stays_done_when_its_outcome_cannot_be_read),
        TEST(the_outcome_that_a_dispatcher_of_before_stored_is_understood),
        TEST(a_missing_claim_proves_nothing_when_redis_was_emptied_since_the_event),
        TEST(a_claim_that_is_there_counts_also_while_the_view_is_inconsistent),
        TEST(a_released_claim_leaves_nothing),
        TEST(a_late_owner_cannot_end_what_another_is_sending_or_has_sent),
        TEST(the_end_of_a_call_without_a_claim_stores_its_outcome_and_its_seq),
        TEST(an_older_seq_of_the_lane_is_superseded_and_the_same_is_not),
        TEST(what_is_overtaken_while_it_waits_is_superseded_unless_it_was_sent),
        TEST(what_may_have_been_called_is_not_overtaken),
        TEST(what_cannot_be_superseded_neither_asks_nor_moves_the_lane),
        TEST(many_are_answered_in_the_order_of_queueing),
        TEST(the_record_is_there_before_the_call_for_a_fast_callback),
        TEST(claims_do_not_stay_for_ever),
        TEST(a_claim_takes_what_its_call_costs_or_neither),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

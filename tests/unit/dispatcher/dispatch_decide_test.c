#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/dispatch_decide.h"
#include "dispatcher/route.h"

#define NOW 1000000000000LL

#define MAX_AGE (3 * 86400000LL)

/* ---- before the call ---- */

static struct dispatch_decision decide(unsigned known, enum claim_verdict claim)
{
    const struct dispatch_facts facts = { .known = known,
                                          .unwanted = "nobody wants it",
                                          .claim = claim,
                                          .attempt = 3,
                                          .now_ms = NOW,
                                          .busy_until_ms = NOW + 40000,
                                          .since_ms = NOW - 60000 };
    return dispatch_decide(&facts);
}

#define NO_CLAIM CLAIM_TAKEN /* not asked: whatever it says */

static void each_row_of_the_table(void **state)
{
    (void)state;
    static const struct {
        unsigned known;
        enum claim_verdict claim;
        enum dispatch_next next;
        enum outcome_kind outcome;
        int64_t wait_ms;
        enum task_mark mark;
        const char *reason;
    } rows[] = {
        { 0, NO_CLAIM, DISPATCH_CLAIM, 0, 0, MARK_NONE, NULL },
        { FACT_UNWANTED, NO_CLAIM, DISPATCH_END, OUTCOME_SKIPPED, 0, 0, "nobody wants it" },
        { FACT_SLOW, NO_CLAIM, DISPATCH_PARK, OUTCOME_WAITING, 60000, 0, "slow" },
        { FACT_CLAIM_ASKED, CLAIM_DONE, DISPATCH_END, OUTCOME_DUPLICATE, 0, 0, NULL },
        { FACT_CLAIM_ASKED, CLAIM_SUPERSEDED, DISPATCH_END, OUTCOME_SUPERSEDED, 0, 0, "later" },
        { FACT_CLAIM_ASKED, CLAIM_BUSY, DISPATCH_HOLD, OUTCOME_WAITING, 40000, 0, NULL },
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_TAKEN, DISPATCH_WAIT, OUTCOME_WAITING, 0, 0,
          "was paused" },
        { FACT_CLAIM_ASKED, CLAIM_TAKEN, DISPATCH_CALL, 0, 0, MARK_NONE, NULL },
        { FACT_CLAIM_ASKED, CLAIM_EXPIRED, DISPATCH_CALL, 0, 0, MARK_CLAIM_EXPIRED, NULL },
        { FACT_CLAIM_ASKED, CLAIM_FORGOTTEN, DISPATCH_CALL, 0, 0, MARK_NO_CLAIM, NULL },
        { FACT_CLAIM_ASKED, CLAIM_NONE, DISPATCH_CALL, 0, 0, MARK_NO_CLAIM, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct dispatch_decision d = decide(rows[i].known, rows[i].claim);
        assert_int_equal(d.next, rows[i].next);
        assert_int_equal(d.outcome, rows[i].outcome);
        assert_int_equal(d.mark, rows[i].mark);
        assert_int_equal(d.attempt, 3); /* none is spent */
        if (rows[i].wait_ms)
            assert_true(d.until_ms == NOW + rows[i].wait_ms);
        if (rows[i].reason)
            assert_non_null(strstr(d.reason, rows[i].reason));
        else
            assert_null(d.reason);
    }
}

static void the_first_row_decides(void **state)
{
    (void)state;
    static const struct {
        unsigned known;
        enum claim_verdict claim;
        enum dispatch_next next;
        enum outcome_kind outcome;
    } rows[] = {
        { FACT_UNWANTED | FACT_SLOW, NO_CLAIM, DISPATCH_END, OUTCOME_SKIPPED },
        /* What was sent, or is overtaken, needs no call, whatever else is. */
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_DONE, DISPATCH_END, OUTCOME_DUPLICATE },
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_SUPERSEDED, DISPATCH_END, OUTCOME_SUPERSEDED },
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_BUSY, DISPATCH_HOLD, OUTCOME_WAITING },
        /* After a pause the claim may be another's: it is asked for again before anything else. */
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_EXPIRED, DISPATCH_WAIT, OUTCOME_WAITING },
        { FACT_CLAIM_ASKED | FACT_CLAIM_OLD, CLAIM_NONE, DISPATCH_WAIT, OUTCOME_WAITING },
        /* Without a claim its partition must be surely ours; a claim says more. */
        { FACT_CLAIM_ASKED | FACT_PARTITION_UNSURE, CLAIM_NONE, DISPATCH_HOLD, OUTCOME_WAITING },
        { FACT_CLAIM_ASKED | FACT_PARTITION_UNSURE, CLAIM_TAKEN, DISPATCH_CALL,
          OUTCOME_DISPATCHED },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct dispatch_decision d = decide(rows[i].known, rows[i].claim);
        assert_int_equal(d.next, rows[i].next);
        assert_int_equal(d.outcome, rows[i].outcome);
    }
}

static void an_expand_is_never_marked(void **state)
{
    (void)state;
    static const enum claim_verdict claims[] = { CLAIM_EXPIRED, CLAIM_FORGOTTEN };
    for (size_t i = 0; i < 2; i++) {
        const struct dispatch_facts facts = { .known = FACT_CLAIM_ASKED,
                                              .claim = claims[i],
                                              .is_expand = true };
        assert_int_equal(dispatch_decide(&facts).next, DISPATCH_CALL);
        assert_int_equal(dispatch_decide(&facts).mark, MARK_NONE);
    }
}

static void what_waits_for_a_broken_downstream_waits_as_long_as_it_is_broken(void **state)
{
    (void)state;
    static const struct {
        int64_t open_ms, least_ms;
    } table[] = {
        { 0, 30000 },       { 30000, 30000 },     { 120000, 120000 },
        { 300000, 300000 }, { 86400000, 300000 }, /* at most */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct github_answer open = { .err = ERR_RETRY,
                                            .because = GATE_BREAKER,
                                            .since_ms = NOW - table[i].open_ms };
        struct dispatch_decision d = dispatch_decide_answer(&open, 3, NOW, 0);
        assert_true(d.until_ms == NOW + table[i].least_ms);
        assert_int_equal(d.next, DISPATCH_PARK);
        assert_int_equal(d.attempt, 3);               /* none is spent */
        d = dispatch_decide_answer(&open, 3, NOW, 1); /* and not all at once */
        assert_true(d.until_ms == NOW + table[i].least_ms * 3 / 2);
    }
}

/* ---- what the allowlist in force and the age say ---- */

static const char yaml[] = "L1:\n  - org/one\n"
                           "L2:\n  - org/two\n  - org/night: {events: [nightly]}\n"
                           "L3:\n  device: { org/three: [alice] }\n";

static const char *unwanted(const struct task *task, int64_t now_ms)
{
    struct allowlist *list;
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), NULL), OK);
    const char *reason = dispatch_unwanted(task, list, now_ms, MAX_AGE);
    allowlist_free(list);
    return reason;
}

static struct task a_task(enum task_kind kind, const char *repo)
{
    return (struct task){ .event = { .kind = EVENT_PULL_REQUEST, .received_ms = NOW },
                          .repo = str_of(repo),
                          .kind = kind };
}

static void a_task_of_a_repo_that_left_the_allowlist_is_not_wanted(void **state)
{
    (void)state;
    struct task listed = a_task(TASK_DISPATCH, "ORG/one");
    struct task gone = a_task(TASK_DISPATCH, "org/gone"), rerun = a_task(TASK_RERUN_ALL, "org/two");
    struct task nightly = a_task(TASK_DISPATCH, "org/night");
    assert_null(unwanted(&listed, NOW));
    assert_string_equal(unwanted(&gone, NOW), ROUTE_NOT_LISTED);
    assert_non_null(strstr(unwanted(&nightly, NOW), "nightly"));
    assert_string_equal(unwanted(&rerun, NOW), ROUTE_NO_RERUNS);
    assert_null(dispatch_unwanted(&gone, NULL, NOW, MAX_AGE)); /* there is no list yet */
}

static void a_task_that_waited_past_the_maximum_age_is_not_wanted(void **state)
{
    (void)state;
    struct task task = a_task(TASK_DISPATCH, "org/one");
    assert_null(unwanted(&task, NOW + MAX_AGE));
    assert_string_equal(unwanted(&task, NOW + MAX_AGE + 1), ROUTE_TOO_OLD);
    task.event.again = STR_LIT("ab12"); /* who replays it knows how old it is */
    assert_null(unwanted(&task, NOW + MAX_AGE + 1));
}

static void the_upstream_needs_no_place_in_the_allowlist_and_an_aggregate_does(void **state)
{
    (void)state;
    struct task suite = a_task(TASK_EXPAND, "pytorch/pytorch");
    struct task aggregate = a_task(TASK_EXPAND, "org/gone");
    suite.run_id = STR_LIT("118578147");
    aggregate.run_id = STR_LIT("d:x:17");
    assert_null(unwanted(&suite, NOW));
    assert_string_equal(unwanted(&suite, NOW + MAX_AGE + 1), ROUTE_TOO_OLD);
    assert_string_equal(unwanted(&aggregate, NOW), ROUTE_NOT_LISTED);
    aggregate.repo = STR_LIT("org/two");
    assert_string_equal(unwanted(&aggregate, NOW), ROUTE_NO_RERUNS);
    aggregate.repo = STR_LIT("org/three");
    assert_null(unwanted(&aggregate, NOW));
}

/* ---- after the answer ---- */

static struct github_answer answer(enum err err)
{
    return (struct github_answer){ .err = err };
}

static struct github_answer limit(int64_t wait_ms)
{
    return (struct github_answer){
        .err = ERR_RETRY, .status = 429, .because = GATE_RATE_LIMIT, .wait_until_ms = NOW + wait_ms
    };
}

/* What follows at NOW. */
static struct dispatch_decision after(struct github_answer a, int attempt, double jitter)
{
    return dispatch_decide_answer(&a, attempt, NOW, jitter);
}

static void success_is_the_end(void **state)
{
    (void)state;
    struct dispatch_decision r = after(answer(OK), 1, 0);
    assert_int_equal(r.next, DISPATCH_END);
    assert_int_equal(r.outcome, OUTCOME_DISPATCHED);
    assert_int_equal(r.mark, MARK_NONE);
}

static void a_refusal_goes_to_the_dlq_at_once(void **state)
{
    (void)state;
    struct dispatch_decision r = after(answer(ERR_REFUSE), 1, 0);
    assert_int_equal(r.next, DISPATCH_DEAD);
    assert_string_equal(r.dlq_class, "refused");
    assert_int_equal(r.outcome, OUTCOME_FAILED);
}

static void the_waits_are_10s_1m_10m_1h_then_exhausted(void **state)
{
    (void)state;
    static const struct {
        enum dispatch_next next;
        int64_t wait_ms;
    } expected[] = {
        { DISPATCH_WAIT, 10000 },
        { DISPATCH_PARK, 60000 },
        { DISPATCH_PARK, 600000 },
        { DISPATCH_PARK, 3600000 },
    };
    struct github_answer a = answer(ERR_RETRY);
    for (int attempt = 1; attempt <= 4; attempt++) {
        struct dispatch_decision late = after(a, attempt, 1);
        struct dispatch_decision early = after(a, attempt, 0);
        assert_int_equal(late.next, expected[attempt - 1].next);
        assert_int_equal(late.until_ms - NOW, expected[attempt - 1].wait_ms);
        assert_int_equal(early.until_ms - NOW, expected[attempt - 1].wait_ms * 8 / 10);
        assert_int_equal(late.attempt, attempt + 1);
        assert_int_equal(late.outcome, OUTCOME_WAITING);
        assert_int_equal(late.mark, MARK_NONE);
    }
    struct dispatch_decision last = after(a, 5, 1);
    assert_int_equal(last.next, DISPATCH_DEAD);
    assert_string_equal(last.dlq_class, "exhausted");
    assert_int_equal(last.outcome, OUTCOME_FAILED);
}

static void no_answer_is_unknown_and_the_next_is_perhaps_a_duplicate(void **state)
{
    (void)state;
    struct github_answer a = answer(ERR_UNKNOWN);
    struct dispatch_decision r = after(a, 1, 0);
    assert_int_equal(r.outcome, OUTCOME_UNKNOWN);
    assert_int_equal(r.mark, MARK_ANSWER_UNSEEN);
    assert_int_equal(r.attempt, 2);
    assert_int_equal(after(a, 5, 0).next, DISPATCH_DEAD);
}

static void a_limit_costs_no_attempt_and_is_obeyed_to_the_millisecond(void **state)
{
    (void)state;
    for (int attempt = 1; attempt <= 9; attempt += 4) {
        struct github_answer a = limit(5000);
        struct dispatch_decision r = after(a, attempt, 0);
        assert_int_equal(r.next, DISPATCH_WAIT);
        assert_int_equal(r.attempt, attempt);
        assert_int_equal(r.until_ms, NOW + 5000);
        assert_int_equal(r.outcome, OUTCOME_WAITING);
        assert_int_equal(after(a, attempt, 1).until_ms, NOW + 5000); /* our own moment */
        a.sent_ms = 1;                                               /* GitHub's */
        assert_true(after(a, attempt, 1).until_ms > NOW + 5000);
    }
}

static void a_long_limit_is_parked(void **state)
{
    (void)state;
    static const int64_t waits_ms[] = { 10001, 60000, 3600000, 86400000 };
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        struct dispatch_decision r = after(limit(waits_ms[i]), 2, 0);
        assert_int_equal(r.next, DISPATCH_PARK);
        assert_true(r.until_ms == NOW + waits_ms[i]);
        assert_int_equal(r.attempt, 2);
    }
}

static void a_5xx_with_retry_after_waits_at_least_that_long(void **state)
{
    (void)state;
    struct github_answer a = { .err = ERR_UNKNOWN, .status = 503, .wait_until_ms = NOW + 120000 };
    struct dispatch_decision r = after(a, 1, 0);
    assert_int_equal(r.next, DISPATCH_PARK);
    assert_int_equal(r.until_ms, NOW + 120000);
    assert_int_equal(r.attempt, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_table),
        cmocka_unit_test(the_first_row_decides),
        cmocka_unit_test(an_expand_is_never_marked),
        cmocka_unit_test(what_waits_for_a_broken_downstream_waits_as_long_as_it_is_broken),
        cmocka_unit_test(a_task_of_a_repo_that_left_the_allowlist_is_not_wanted),
        cmocka_unit_test(a_task_that_waited_past_the_maximum_age_is_not_wanted),
        cmocka_unit_test(the_upstream_needs_no_place_in_the_allowlist_and_an_aggregate_does),
        cmocka_unit_test(success_is_the_end),
        cmocka_unit_test(a_refusal_goes_to_the_dlq_at_once),
        cmocka_unit_test(the_waits_are_10s_1m_10m_1h_then_exhausted),
        cmocka_unit_test(no_answer_is_unknown_and_the_next_is_perhaps_a_duplicate),
        cmocka_unit_test(a_limit_costs_no_attempt_and_is_obeyed_to_the_millisecond),
        cmocka_unit_test(a_long_limit_is_parked),
        cmocka_unit_test(a_5xx_with_retry_after_waits_at_least_that_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

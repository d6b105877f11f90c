#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "deploy/crcrctl/timeline.h"

static void add(struct timeline *t, enum topic topic, const char *repo, int64_t at_ms,
                const char *outcome, const char *detail)
{
    struct summary s = { .topic = topic, .at_ms = at_ms, .tier = *repo ? 3 : 0 };

    snprintf(s.delivery, sizeof(s.delivery), "d");
    snprintf(s.topic_name, sizeof(s.topic_name), "crcr.%s", topic_base_name(topic));
    s.repos = *repo ? str_dup(str_of(repo)) : NULL;
    snprintf(s.outcome, sizeof(s.outcome), "%s", outcome);
    snprintf(s.detail, sizeof(s.detail), "%s", detail);
    if (topic == TOPIC_CALLBACKS) {
        s.job_state = str_is(str_of(outcome), "in_progress") ? JOB_IN_PROGRESS : JOB_COMPLETED;
        snprintf(s.job, sizeof(s.job), "%s", detail);
        snprintf(s.run_id, sizeof(s.run_id), "17");
        snprintf(s.run_attempt, sizeof(s.run_attempt), "1");
    }
    timeline_add(t, &s);
}

static void call_back(struct timeline *t, int64_t at_ms, const char *outcome, const char *job,
                      const char *run_id, int64_t attempt)
{
    add(t, TOPIC_CALLBACKS, "o/r", at_ms, outcome, job);
    struct summary *s = &t->steps[t->n - 1];
    snprintf(s->run_id, sizeof(s->run_id), "%s", run_id);
    snprintf(s->check_run_id, sizeof(s->check_run_id), "%s-%d", run_id, (int)attempt);
    snprintf(s->run_attempt, sizeof(s->run_attempt), "%d", (int)attempt);
}

/* The state and the reason of the only downstream, at time 100,000. */
static void stands(struct timeline *t, const char *state, const char *why)
{
    struct downstream_state *all;

    timeline_sort(t);
    assert_int_equal(timeline_states(t, 0, t->n, 100000, &all), 1);
    assert_string_equal(all[0].state, state);
    assert_string_equal(all[0].why, why);
    assert_int_equal(all[0].tier, 3);
    free(all);
    timeline_clear(t);
}

static void what_was_routed_waits_for_its_sender(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCH_L3, "o/r", 40000, "routed", "");
    stands(&t, "routed",
           "no outcome for 60 s: waits for its sender in crcr.dispatch.l3[0]@0 (crcrctl lag)");
}

static void a_rerun_that_went_out_waits_for_no_callback_of_its_own(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCHES, "o/r", 40000, "dispatched", "rerun_failed of run 17");
    snprintf(t.steps[0].kind, sizeof(t.steps[0].kind), "rerun_failed");
    stands(&t, "dispatched",
           "it runs again, its jobs report under the delivery of their dispatch (for 60 s): "
           "rerun_failed of run 17");
}

static void the_last_step_decides_whatever_order_they_were_read_in(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "success", "CI / linux");
    add(&t, TOPIC_DISPATCHES, "o/r", 10000, "dispatched", "HTTP 204");
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "in_progress", "CI / linux");
    add(&t, TOPIC_DISPATCH_L3, "O/R", 5000, "routed", "");
    stands(&t, "success", "CI / linux");
}

static void a_result_repeats_a_callback_and_changes_nothing(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCHES, "o/r", 40000, "dispatched", "HTTP 204, 35 ms");
    add(&t, TOPIC_RESULTS, "o/r", 50000, "in_progress", "");
    add(&t, TOPIC_RECONCILE, "o/r", 50000, "dirty", "");
    stands(&t, "dispatched",
           "GitHub took the dispatch; no job has called back yet (for 60 s): HTTP 204, 35 ms");
}

static void steps_of_one_millisecond_follow_the_way_of_the_data(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCHES, "o/r", 1, "dispatched", "");
    add(&t, TOPIC_DISPATCH_L3, "o/r", 1, "routed", "");
    add(&t, TOPIC_EVENTS, "", 1, "accepted", "");
    timeline_sort(&t);
    assert_int_equal(t.steps[0].topic, TOPIC_EVENTS);
    assert_int_equal(t.steps[1].topic, TOPIC_DISPATCH_L3);
    assert_int_equal(t.steps[2].topic, TOPIC_DISPATCHES);
    timeline_clear(&t);
}

static void a_wait_says_until_when_in_whatever_order_it_was_written(void **state)
{
    struct timeline t;

    (void)state;
    for (int first = 0; first < 4; first++) {
        timeline_init(&t);
        add(&t, TOPIC_DELAY_1M, "o/r", 50000 + first % 2, "waits",
            "until 03:20 for crcr.dispatch.l3");
        add(&t, TOPIC_DISPATCHES, "o/r", 50001 - first % 2, first < 2 ? "waiting" : "unknown",
            "HTTP 429");
        stands(&t, "waits", "until 03:20 for crcr.dispatch.l3");
    }
}

static void each_downstream_of_a_record_goes_its_own_way(void **state)
{
    static const struct {
        const char *repo, *state, *why;
    } wanted[] = {
        { "o/a", "success", "CI / linux" },
        { "o/b", "waits", "until 03:20 for crcr.dispatch.l3" },
        { "o/c", "waits", "until 03:20 for crcr.dispatch.l3" },
        { "o/d", "routed",
          "no outcome for 90 s: waits for its sender in crcr.dispatch.l3[0]@0 (crcrctl lag)" },
        { "o/e", "parked", "refused from crcr.dispatch.l3: 404" },
        { "o/f", "dropped",
          "somebody took it out of the dead-letter queue (for 60 s): by hand: dlq 1@7" },
        { "o/g", "dropped",
          "somebody took it out of the dead-letter queue (for 60 s): by hand: dlq 1@7" },
    };
    struct timeline t;
    struct downstream_state *all;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCH_L3, "o/a,o/b,o/c,o/d,o/e,o/f,o/g", 10000, "routed", "");
    add(&t, TOPIC_DISPATCHES, "o/a", 11000, "dispatched", "HTTP 204");
    add(&t, TOPIC_CALLBACKS, "o/a", 20000, "success", "CI / linux");
    add(&t, TOPIC_DISPATCHES, "o/b", 30000, "waiting", "HTTP 429");
    add(&t, TOPIC_DISPATCHES, "o/c", 30000, "waiting", "HTTP 429");
    add(&t, TOPIC_DELAY_1M, "o/b,O/C", 30001, "waits", "until 03:20 for crcr.dispatch.l3");
    add(&t, TOPIC_DLQ, "o/e", 31000, "parked", "refused from crcr.dispatch.l3: 404");
    add(&t, TOPIC_DLQ, "o/f,o/g", 31000, "parked", "exhausted from crcr.dispatch.l3: 503");
    add(&t, TOPIC_DLQ, "o/f,o/g", 40000, "dropped", "by hand: dlq 1@7");
    timeline_sort(&t);
    assert_int_equal(timeline_states(&t, 0, t.n, 100000, &all), 7);
    for (size_t i = 0; i < 7; i++) {
        assert_true(str_is(all[i].repo, wanted[i].repo));
        assert_string_equal(all[i].state, wanted[i].state);
        assert_string_equal(all[i].why, wanted[i].why);
    }
    free(all);
    timeline_clear(&t);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void a_job_that_passes_does_not_hide_one_that_failed(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCHES, "o/r", 10000, "dispatched", "HTTP 204");
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "failure", "CI / x");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "success", "CI / y");
    add(&t, TOPIC_CALLBACKS, "O/R", 40000, "success", "CI / z");
    stands(&t, "failure", "1 of 3 failed: CI / x");

    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "failure", "CI / x");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "in_progress", "CI / y");
    add(&t, TOPIC_CALLBACKS, "o/r", 40000, "cancelled", "CI / z");
    stands(&t, "failure", "2 of 3 failed, 1 in progress: CI / x, CI / z");
}

static void several_jobs_are_counted(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "in_progress", "CI / x");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "in_progress", "CI / y");
    add(&t, TOPIC_CALLBACKS, "o/r", 40000, "success", "CI / z");
    stands(&t, "in_progress", "2 of 3 jobs in progress (for 80 s): CI / x, CI / y");

    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / x");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "success", "CI / y");
    stands(&t, "success", "2 of 2 succeeded");

    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / x");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "skipped", "CI / y");
    stands(&t, "success", "1 of 2 succeeded, 1 neutral or skipped");
}

static void many_names_are_cut_and_the_counts_stay(void **state)
{
    struct timeline t;
    struct downstream_state *all;
    char name[80];

    (void)state;
    timeline_init(&t);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "CI / a job with a name that is not short, number %02d", i);
        add(&t, TOPIC_CALLBACKS, "o/r", 20000 + i, "failure", name);
    }
    timeline_sort(&t);
    assert_int_equal(timeline_states(&t, 0, t.n, 100000, &all), 1);
    assert_true(str_starts(str_of(all[0].why), "40 of 40 failed: CI / a job"));
    assert_true(str_ends(str_of(all[0].why), "number 06, …"));
    free(all);
    timeline_clear(&t);
}

static void a_late_in_progress_lowers_nothing(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / linux");
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "in_progress", "CI / linux");
    stands(&t, "success", "CI / linux");

    timeline_init(&t); /* what the sweep called timed_out is raised by what the job says */
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "timed_out", "CI / linux");
    t.steps[0].job_state = JOB_TIMED_OUT;
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "in_progress", "CI / linux");
    stands(&t, "timed_out", "CI / linux");

    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "timed_out", "CI / linux");
    t.steps[0].job_state = JOB_TIMED_OUT;
    add(&t, TOPIC_CALLBACKS, "o/r", 30000, "success", "CI / linux");
    stands(&t, "success", "CI / linux");
}

static void what_was_sent_before_changes_nothing(void **state)
{
    struct timeline t;

    (void)state;
    for (int called_back = 0; called_back < 2; called_back++) {
        timeline_init(&t);
        add(&t, TOPIC_DISPATCHES, "o/r", 10000, "dispatched", "HTTP 204");
        if (called_back)
            add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / linux");
        add(&t, TOPIC_DISPATCH_L3, "o/r", 30000, "routed", "");
        add(&t, TOPIC_DISPATCHES, "o/r", 30001, "duplicate", "0 ms");
        stands(&t, called_back ? "success" : "dispatched",
               called_back
                   ? "CI / linux"
                   : "GitHub took the dispatch; no job has called back yet (for 90 s): HTTP 204");
    }
}

/* A step of dispatch.l3 (no outcome) or of dispatches. */
static void add_task(struct timeline *t, int64_t at_ms, const char *outcome, const char *task,
                     const char *seq, int64_t attempt)
{
    add(t, *outcome ? TOPIC_DISPATCHES : TOPIC_DISPATCH_L3, "o/r", at_ms,
        *outcome ? outcome : "routed", "");
    struct summary *s = &t->steps[t->n - 1];
    snprintf(s->task, sizeof(s->task), "%s", task);
    snprintf(s->seq, sizeof(s->seq), "%s", seq);
    s->attempt = attempt;
}

#define TAKEN      "GitHub took the dispatch; no job has called back yet (for 90 s): "
#define SUPERSEDED "a newer event of the pull request was sent (for 90 s): "
#define WAITS_60_S                                                                                 \
    "no outcome for 60 s: waits for its sender in crcr.dispatch.l3[0]@0 (crcrctl lag)"

static void what_was_sent_is_the_outcome_of_every_routing_of_it(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t); /* redelivered; its outcome repeats the first, and its moment */
    add_task(&t, 9000, "", "dispatch||", "5:0:1", 1);
    add_task(&t, 10000, "dispatched", "dispatch||", "5:0:1", 1);
    add_task(&t, 10000, "duplicate", "dispatch||", "5:0:1", 1);
    add_task(&t, 40000, "", "dispatch||", "5:0:9", 1);
    stands(&t, "dispatched", TAKEN);

    timeline_init(&t); /* a push has no seq in its outcome */
    add_task(&t, 10000, "dispatched", "dispatch||", "", 1);
    add_task(&t, 40000, "", "dispatch||", "0:0:9", 1);
    stands(&t, "dispatched", TAKEN);

    timeline_init(&t); /* the jobs say more */
    add_task(&t, 10000, "dispatched", "dispatch||", "5:0:1", 1);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / linux");
    add_task(&t, 40000, "", "dispatch||", "5:0:9", 1);
    stands(&t, "success", "CI / linux");

    timeline_init(&t); /* replayed --again, or a re-run: another task */
    add_task(&t, 10000, "dispatched", "dispatch||", "5:0:1", 1);
    add_task(&t, 40000, "", "dispatch||abc", "5:0:9", 1);
    stands(&t, "routed", WAITS_60_S);
}

static void an_outcome_belongs_to_its_routing_although_clocks_differ(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add_task(&t, 10000, "superseded", "dispatch||", "5:0:1", 1);
    add_task(&t, 10050, "", "dispatch||", "5:0:1", 1);
    stands(&t, "superseded", SUPERSEDED);

    timeline_init(&t);
    add_task(&t, 10000, "waiting", "dispatch||", "5:0:1", 1);
    add_task(&t, 10050, "", "dispatch||", "5:0:1", 1);
    stands(&t, "waiting", "it is sent later (for 90 s): ");
}

static void a_routing_without_an_outcome_of_its_own_waits_for_its_sender(void **state)
{
    static const struct {
        const char *first, *seq;
        int64_t attempt;
    } then[] = {
        { "skipped", "5:0:9", 1 },    /* redelivered, and the repository is listed again */
        { "superseded", "5:0:9", 1 }, /* redelivered */
        { "failed", "5:0:1", 1 },     /* replayed from the DLQ */
        { "waiting", "5:0:1", 1 },    /* back from a wait that costs no attempt */
        { "unknown", "5:0:1", 2 },    /* back from one that does */
    };
    struct timeline t;

    (void)state;
    for (size_t i = 0; i < sizeof(then) / sizeof(*then); i++) {
        timeline_init(&t);
        add_task(&t, 9000, "", "dispatch||", "5:0:1", 1);
        add_task(&t, 10000, then[i].first, "dispatch||", "5:0:1", 1);
        add_task(&t, 40000, "", "dispatch||", then[i].seq, then[i].attempt);
        stands(&t, "routed", WAITS_60_S);
    }
}

static void what_another_downstream_got_is_no_outcome_of_this_one(void **state)
{
    struct timeline t;
    struct downstream_state *all;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCH_L3, "o/a,o/b", 40000, "routed", "");
    add(&t, TOPIC_DISPATCHES, "O/A", 10000, "dispatched", "HTTP 204");
    timeline_sort(&t);
    assert_int_equal(timeline_states(&t, 0, t.n, 100000, &all), 2);
    assert_string_equal(all[0].state, "dispatched");
    assert_string_equal(all[1].state, "routed");
    free(all);
    timeline_clear(&t);
}

static void a_dispatch_that_is_reported_again_does_not_deny_the_callbacks(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_DISPATCHES, "o/r", 10000, "dispatched", "HTTP 204");
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "in_progress", "CI / linux");
    add(&t, TOPIC_DISPATCHES, "o/r", 40000, "dispatched", "HTTP 204");
    stands(&t, "in_progress", "a job is running (for 80 s): CI / linux");
}

static void what_goes_wrong_after_the_callbacks_is_reported(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    add(&t, TOPIC_CALLBACKS, "o/r", 20000, "success", "CI / linux");
    add(&t, TOPIC_DLQ, "o/r", 40000, "parked", "refused from crcr.results: HTTP 400");
    stands(&t, "parked", "refused from crcr.results: HTTP 400");
}

static void of_a_job_the_newest_attempt_counts(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    call_back(&t, 20000, "failure", "CI / linux", "17", 1);
    call_back(&t, 30000, "in_progress", "CI / linux", "17", 2);
    call_back(&t, 40000, "failure", "CI / linux", "17", 1);
    stands(&t, "in_progress", "a job is running (for 70 s): CI / linux");

    timeline_init(&t);
    call_back(&t, 20000, "success", "CI / linux", "18", 1);
    call_back(&t, 30000, "cancelled", "CI / linux", "9", 2); /* an older run */
    stands(&t, "success", "CI / linux");

    timeline_init(&t);
    call_back(&t, 20000, "failure", "CI / linux", "17", 1);
    snprintf(t.steps[0].run_attempt, sizeof(t.steps[0].run_attempt), "retry-1");
    call_back(&t, 30000, "success", "CI / linux", "17", 1);
    snprintf(t.steps[1].run_attempt, sizeof(t.steps[1].run_attempt), "retry-2");
    stands(&t, "success", "CI / linux");
}

static void jobs_of_a_matrix_and_of_runs_without_order_stand_side_by_side(void **state)
{
    struct timeline t;

    (void)state;
    timeline_init(&t);
    call_back(&t, 20000, "failure", "CI / test", "17", 2);
    snprintf(t.steps[0].check_run_id, sizeof(t.steps[0].check_run_id), "7001");
    call_back(&t, 30000, "success", "CI / test", "17", 2);
    call_back(&t, 30000, "cancelled", "CI / test", "17", 1);
    stands(&t, "failure", "1 of 2 failed: CI / test");

    timeline_init(&t);
    call_back(&t, 20000, "failure", "CI / test", "a-uuid", 1);
    call_back(&t, 30000, "success", "CI / test", "b-uuid", 1);
    stands(&t, "failure", "1 of 2 failed: CI / test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_routed_waits_for_its_sender),
        cmocka_unit_test(a_rerun_that_went_out_waits_for_no_callback_of_its_own),
        cmocka_unit_test(the_last_step_decides_whatever_order_they_were_read_in),
        cmocka_unit_test(a_result_repeats_a_callback_and_changes_nothing),
        cmocka_unit_test(a_wait_says_until_when_in_whatever_order_it_was_written),
        cmocka_unit_test(steps_of_one_millisecond_follow_the_way_of_the_data),
        cmocka_unit_test(each_downstream_of_a_record_goes_its_own_way),
        cmocka_unit_test(a_job_that_passes_does_not_hide_one_that_failed),
        cmocka_unit_test(several_jobs_are_counted),
        cmocka_unit_test(many_names_are_cut_and_the_counts_stay),
        cmocka_unit_test(a_late_in_progress_lowers_nothing),
        cmocka_unit_test(what_was_sent_before_changes_nothing),
        cmocka_unit_test(what_was_sent_is_the_outcome_of_every_routing_of_it),
        cmocka_unit_test(an_outcome_belongs_to_its_routing_although_clocks_differ),
        cmocka_unit_test(a_routing_without_an_outcome_of_its_own_waits_for_its_sender),
        cmocka_unit_test(what_another_downstream_got_is_no_outcome_of_this_one),
        cmocka_unit_test(a_dispatch_that_is_reported_again_does_not_deny_the_callbacks),
        cmocka_unit_test(what_goes_wrong_after_the_callbacks_is_reported),
        cmocka_unit_test(of_a_job_the_newest_attempt_counts),
        cmocka_unit_test(jobs_of_a_matrix_and_of_runs_without_order_stand_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

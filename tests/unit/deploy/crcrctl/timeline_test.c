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
    snprintf(s.repo, sizeof(s.repo), "%s", repo);
    snprintf(s.outcome, sizeof(s.outcome), "%s", outcome);
    snprintf(s.detail, sizeof(s.detail), "%s", detail);
    timeline_add(t, &s);
}

/* The state and the reason of the only downstream, at time 100,000. */
static void stands(struct timeline *t, const char *state, const char *why)
{
    struct standing *all;

    timeline_sort(t);
    assert_int_equal(timeline_standings(t, 0, t->n, 100000, &all), 1);
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
    for (int first = 0; first < 2; first++) {
        timeline_init(&t);
        add(&t, TOPIC_DELAY_1M, "o/r", 50000 + first, "waits", "until 03:20 for crcr.dispatch.l3");
        add(&t, TOPIC_DISPATCHES, "o/r", 50001 - first, "waiting", "HTTP 429");
        stands(&t, "waits", "until 03:20 for crcr.dispatch.l3");
    }
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What becomes of an event: the records of tasks for each tier, the outcomes of those that get
 * none, and when it is finished. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router_scene.h"

/* ---- what an event becomes ---- */

static void each_tier_gets_its_downstreams(void)
{
    read_event(opened, pull_request, 0);
    assert_string_equal(fake.said, "L1 dispatch org/one; L2 dispatch org/two; "
                                   "L3 dispatch org/three; L4 dispatch org/four; ");
    assert_true(str_is(world.task.event.delivery, DELIVERY));
    assert_true(str_is(world.task.event_key, "pytorch/pytorch#17"));
    assert_int_equal(world.task.attempt, 1);
    assert_ptr_equal(world.value.ptr, world.record.value.ptr); /* the body as it is */
    assert_string_equal(world.trimmed, "");
    assert_true(world.task.seq.updated_ms == UPDATED);
    assert_int_equal(world.task.seq.partition, 3);
    assert_int_equal(world.task.seq.offset, 21);
    assert_true(counted("pull_request", "routed") == 1);
    stored();
}

static void a_record_is_of_16_downstreams_at_most(void)
{
    use_tier_of(16);
    read_event(opened, pull_request, 0);
    assert_int_equal(n_said("L1 dispatch "), 1);
    assert_int_equal(n_said("org/"), 16);
    stored();
    use_tier_of(33);
    read_event(opened, pull_request, 0);
    assert_int_equal(n_said("L1 dispatch "), 3);
    assert_int_equal(n_said("org/"), 33);
    assert_non_null(strstr(fake.said, "org/r16; L1 dispatch org/r17,"));
    assert_non_null(strstr(fake.said, "org/r32; L1 dispatch org/r33; "));
    stored();
}

static void it_is_finished_when_all_of_it_is_stored_and_not_before(void)
{
    read_event(opened, pull_request, 0);
    fake.options.does->drop(fake.options.opaque, &world.work); /* it may arrive */
    assert_int_equal(n_said("done"), 0);
    stored();
    assert_int_equal(n_said("done"), 1);
}

static void read_large(void)
{
    static char body[70000];
    size_t len = sizeof(pull_request) - 1;
    memset(body, ' ', sizeof(body) - 1);
    memcpy(body, pull_request, len);
    read_event(opened, body, 0);
}

static void what_github_does_not_take_is_fitted_once_for_all(void)
{
    read_large();
    assert_int_equal(n_said("dispatch"), 4);
    assert_int_equal(n_said("fit; "), 1);
    assert_true(str_is(world.value, FITTED));
    assert_string_equal(world.trimmed, "[\"body\"]");
    stored();
    read_event(opened, PULL_REQUEST(",\"title\":\"a\\u0000b\""), 0);
    assert_int_equal(n_said("fit; "), 1);
    assert_true(str_is(world.value, FITTED));
    stored();
}

static void a_body_that_cannot_be_made_to_fit_fails_for_each_downstream(void)
{
    world.fit = ERR_REFUSE;
    read_large();
    assert_string_equal(fake.said,
                        "fit; dead refused; outcome failed org/one; outcome failed org/two; "
                        "outcome failed org/three; outcome failed org/four; ");
    assert_true(counted("pull_request", "refused") == 1);
    stored();
}

static void a_push_goes_to_every_tier_and_may_change_the_allowlist(void)
{
    const struct event push = { .kind = EVENT_PUSH };
    read_event(push,
               "{\"ref\":\"refs/heads/main\",\"after\":\"" SHA
               "\",\"repository\":{\"full_name\":\"pytorch/pytorch\"}}",
               0);
    assert_int_equal(n_said("dispatch"), 4);
    assert_true(world.task.seq.updated_ms == 0);
    assert_true(world.pushed);
    stored();
    world.pushed = false;
    read_event(opened, pull_request, 0);
    assert_false(world.pushed);
    stored();
}

/* ---- skipped ---- */

static void an_event_that_is_too_old_is_skipped_for_each_downstream(void)
{
    read_event(opened, pull_request, MAX_AGE + 60000);
    assert_string_equal(fake.said, "outcome skipped org/one; outcome skipped org/two; "
                                   "outcome skipped org/three; outcome skipped org/four; ");
    assert_string_equal(world.outcome.error, ROUTE_TOO_OLD);
    assert_true(counted("pull_request", "skipped") == 1);
    assert_true(counted("pull_request", "routed") == 0);
    stored();
    read_event(opened, pull_request, MAX_AGE - 60000);
    assert_int_equal(n_said("dispatch"), 4);
    stored();
}

static void an_event_that_concerns_no_downstream_is_skipped_without_outcomes(void)
{
    use_allowlist("L2:\n  - org/night: {events: [nightly]}\n");
    read_event(opened, pull_request, 0);
    assert_string_equal(fake.said, "");
    assert_true(counted("pull_request", "skipped") == 1);
    stored();
    assert_string_equal(fake.said, "done; ");
}

static void what_cannot_be_read_is_poison_and_finished(void)
{
    read_event(opened, "[]", 0);
    stored();
    assert_string_equal(fake.said, "dead poison; done; ");
    assert_true(counted("pull_request", "poison") == 1);
}

/* ---- re-runs ---- */

static void a_jobs_check_becomes_a_rerun_of_its_run_without_the_body(void)
{
    press("crcr/org/three/build", "4711:17");
    assert_string_equal(fake.said, "L3 rerun_failed org/three; ");
    assert_string_equal(world.run_id, "4711");
    assert_int_equal(world.value.len, 0);
    assert_true(counted("check_run", "routed") == 1);
    stored();
}

static void an_aggregates_check_becomes_an_expand_of_its_tier(void)
{
    press("crcr/org/four", "d:" DELIVERY ":17");
    assert_string_equal(fake.said, "L4 expand org/four; ");
    assert_ptr_equal(world.value.ptr, world.record.value.ptr); /* it may become a dispatch */
    stored();
}

static void a_rerun_below_l3_is_skipped(void)
{
    press("crcr/org/two/build", "4711:17");
    assert_string_equal(fake.said, "outcome skipped org/two; ");
    assert_string_equal(world.outcome.error, ROUTE_NO_RERUNS);
    stored();
}

/* ---- before there is an allowlist ---- */

static void no_event_is_read_before_there_is_an_allowlist(void)
{
    const struct allowlist *list = world.version.list;
    world.version.list = NULL;
    assert_int_equal(fake.options.does->tick(fake.options.opaque), 100);
    assert_string_equal(fake.said, "");
    assert_string_equal(world.not_ready, "GitHub answered 404");
    assert_true(fake.waiting);
    world.version.list = list;
    fake.options.does->tick(fake.options.opaque);
    assert_string_equal(fake.said, "read; ");
    assert_string_equal(world.not_ready, "");
    assert_false(fake.waiting);
    assert_int_equal(fake.options.does->tick(fake.options.opaque), 1000);
    assert_string_equal(fake.said, "read; ");
    assert_int_equal(world.n_held, 0);
}

int main(void)
{
#define TEST(f) LOOP_TEST(f)
    const struct CMUnitTest tests[] = {
        TEST(each_tier_gets_its_downstreams),
        TEST(a_record_is_of_16_downstreams_at_most),
        TEST(it_is_finished_when_all_of_it_is_stored_and_not_before),
        TEST(what_github_does_not_take_is_fitted_once_for_all),
        TEST(a_body_that_cannot_be_made_to_fit_fails_for_each_downstream),
        TEST(a_push_goes_to_every_tier_and_may_change_the_allowlist),
        TEST(an_event_that_is_too_old_is_skipped_for_each_downstream),
        TEST(an_event_that_concerns_no_downstream_is_skipped_without_outcomes),
        TEST(what_cannot_be_read_is_poison_and_finished),
        TEST(a_jobs_check_becomes_a_rerun_of_its_run_without_the_body),
        TEST(an_aggregates_check_becomes_an_expand_of_its_tier),
        TEST(a_rerun_below_l3_is_skipped),
        TEST(no_event_is_read_before_there_is_an_allowlist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

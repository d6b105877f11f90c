#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/reporter/aggregate_scene.h"

/* ---- the dispatch ---------------------------------------------------------------------------- */

static void dispatched_is_queued(void **state)
{
    struct scene *s = *state;
    assert_open(s, "queued", AGGREGATE_SENT);
    assert_true(s->a.started);
    strcpy(s->dispatch.outcome, "unknown");
    assert_open(s, "queued", AGGREGATE_SENT);
}

static void a_waiting_dispatch_is_queued_and_says_so(void **state)
{
    struct scene *s = *state;
    strcpy(s->dispatch.outcome, "waiting");
    assert_open(s, "queued", AGGREGATE_WAITING);
}

static void a_failed_dispatch_is_a_failure(void **state)
{
    struct scene *s = *state;
    strcpy(s->dispatch.outcome, "failed");
    assert_completed(s, "failure");
    assert_true(s->a.started);
    assert_int_equal(s->a.look_ms, 0);
}

static void a_superseded_or_skipped_dispatch_starts_none_and_ends_one_as_cancelled(void **state)
{
    struct scene *s = *state;
    static const char *const outcomes[] = { "superseded", "skipped" };
    for (size_t i = 0; i < 2; i++) {
        strcpy(s->dispatch.outcome, outcomes[i]);
        assert_completed(s, "cancelled");
        assert_false(s->a.started);
    }
}

static void nobody_answering_is_timed_out_and_looked_for_then(void **state)
{
    struct scene *s = *state;
    now(s, SILENT - 1);
    assert_open(s, "queued", AGGREGATE_SENT);
    assert_int_equal(s->a.look_ms, SENT_MS + SILENT);
    now(s, SILENT);
    assert_completed(s, "timed_out");
    assert_int_equal(s->a.look_ms, 0);
}

static void a_job_after_the_time_out_opens_it_again(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", NULL, SILENT + 1);
    now(s, SILENT + 2);
    assert_open(s, "in_progress", AGGREGATE_BUSY);
}

static void jobs_count_more_than_a_failed_dispatch(void **state)
{
    struct scene *s = *state;
    strcpy(s->dispatch.outcome, "failed");
    job(s, "77", "a", "1", NULL, 1000);
    assert_open(s, "in_progress", AGGREGATE_BUSY);
}

static void jobs_of_another_delivery_do_not_count(void **state)
{
    struct scene *s = *state;
    struct result_record *other = job(s, "77", "a", "1", "failure", 2000);
    free(other->delivery_id);
    other->delivery_id = mem_dup("d-0");
    assert_open(s, "queued", AGGREGATE_SENT);
}

/* ---- other CIs ------------------------------------------------------------------------------- */

static void a_failure_of_another_ci_shows_at_once(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", NULL, 1000);
    job(s, "77", "b", "1", "failure", 2000);
    assert_completed(s, "failure");
}

static void green_of_another_ci_needs_run_complete(void **state)
{
    struct scene *s = *state;
    struct result_record *last = job(s, "77", "a", "1", "success", 2000);
    assert_open(s, "in_progress", AGGREGATE_MAY_FOLLOW);
    last->run_complete = 1;
    assert_completed(s, "success");
}

static void run_complete_does_not_hide_a_job_in_progress(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "success", 2000)->run_complete = 1;
    job(s, "77", "b", "1", NULL, 1000);
    assert_open(s, "in_progress", AGGREGATE_BUSY);
    assert_int_equal(s->a.look_ms, 0);
}

static void or_nothing_in_progress_for_a_while(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "success", 2000);
    now(s, 2000 + QUIET - 1);
    assert_open(s, "in_progress", AGGREGATE_MAY_FOLLOW);
    assert_int_equal(s->a.look_ms, SENT_MS + 2000 + QUIET);
    now(s, 2000 + QUIET);
    assert_completed(s, "success");
    assert_int_equal(s->a.ended_ms, SENT_MS + 2000);
}

static void a_run_id_of_digits_alone_makes_no_run_of_actions(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "success", 2000);
    assert_false(sum(s)->runs[0].actions);
    assert_false(s->a.runs[0].ask);
}

/* ---- GitHub Actions -------------------------------------------------------------------------- */

static void a_run_is_asked_about_5_15_30_s_after_its_last_job_then_each_minute(void **state)
{
    struct scene *s = *state;
    static const int64_t times[] = { 5000, 15000, 30000, 90000, 150000, 210000 };
    of_actions(job(s, "77", "a", "1", "success", 2000));
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        now(s, 2000 + times[i] - 1);
        assert_open(s, "in_progress", AGGREGATE_RUN_GOING);
        assert_false(s->a.runs[0].ask);
        assert_int_equal(s->a.look_ms, SENT_MS + 2000 + times[i]);
        now(s, 2000 + times[i]);
        assert_true(sum(s)->runs[0].ask);
        said(s, i % 2 ? RUN_SAID_GOING : RUN_SAID_NOTHING, "", 1, 2000 + times[i]);
    }
}

static void a_run_is_not_asked_about_while_a_job_is_in_progress(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    of_actions(job(s, "77", "b", "1", NULL, 1000));
    assert_open(s, "in_progress", AGGREGATE_BUSY);
    assert_false(s->a.runs[0].ask);
}

static void a_failed_job_of_actions_waits_for_its_run(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "failure", 2000));
    assert_open(s, "in_progress", AGGREGATE_RUN_GOING);
}

static void the_conclusion_is_the_worst_of_run_and_jobs(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_COMPLETED, "success", 1, 9000);
    assert_completed(s, "success");
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    assert_completed(s, "failure");
    said(s, RUN_SAID_COMPLETED, "startup_failure", 1, 9000);
    assert_completed(s, "failure");
    of_actions(job(s, "77", "b", "1", "cancelled", 2000));
    said(s, RUN_SAID_COMPLETED, "success", 1, 9000);
    assert_completed(s, "cancelled");
}

static void a_run_of_actions_whose_jobs_were_all_skipped_is_skipped(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "skipped", 2000));
    said(s, RUN_SAID_COMPLETED, "success", 1, 7000); /* its report was a success */
    assert_string_equal(sum(s)->conclusion, "skipped");
    said(s, RUN_SAID_COMPLETED, "failure", 1, 7000);
    assert_string_equal(sum(s)->conclusion, "failure");
    said(s, RUN_SAID_COMPLETED, "success", 1, 7000);
    of_actions(job(s, "77", "b", "1", "success", 2000));
    assert_string_equal(sum(s)->conclusion, "success");
}

static void what_nobody_has_heard_of_is_never_green(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_COMPLETED, "exploded", 1, 9000);
    assert_completed(s, "failure");
}

static void a_new_attempt_opens_it_again_until_github_says_that_it_ended(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "failure", 2000));
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    of_actions(job(s, "77", "a", "2", NULL, 20000));
    assert_open(s, "in_progress", AGGREGATE_BUSY);
    of_actions(job(s, "77", "a", "3", "success", 30000));
    assert_open(s, "in_progress", AGGREGATE_RUN_GOING);
    said(s, RUN_SAID_COMPLETED, "success", 3, 40000);
    assert_completed(s, "success");
    assert_int_equal(s->a.n_jobs, 1);
}

static void a_refused_question_falls_back_to_the_quiet_rule(void **state)
{
    struct scene *s = *state;
    struct result_record *last = job(s, "77", "a", "1", "success", 2000);
    of_actions(last);
    said(s, RUN_SAID_NO, "", 0, 7000);
    assert_open(s, "in_progress", AGGREGATE_MAY_FOLLOW);
    assert_false(s->a.runs[0].ask);
    assert_int_equal(s->a.look_ms, SENT_MS + 2000 + QUIET);
    now(s, 2000 + QUIET);
    assert_completed(s, "success");
    now(s, 8000);
    last->run_complete = 1;
    assert_completed(s, "success");
}

static void a_refused_question_is_asked_again_after_another_job(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_NO, "", 0, 7000);
    of_actions(job(s, "77", "b", "1", "success", 8000));
    assert_true(sum(s)->runs[0].ask);
}

static void a_run_that_never_ends_is_timed_out(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_GOING, "", 1, SILENT);
    now(s, 2000 + SILENT - 1);
    assert_open(s, "in_progress", AGGREGATE_RUN_GOING);
    assert_int_equal(s->a.look_ms, SENT_MS + 2000 + SILENT);
    now(s, 2000 + SILENT);
    assert_completed(s, "timed_out");
}

static void no_more_than_20_runs_are_asked_about(void **state)
{
    struct scene *s = *state;
    char run_id[16];
    size_t asked = 0;
    for (int i = 0; i < 25; i++) {
        snprintf(run_id, sizeof(run_id), "%d", 100 + i);
        struct result_record *one = job(s, run_id, "a", "1", "success", 2000);
        of_actions(one);
        free(one->workflow_name);
        one->workflow_name = mem_dup(run_id);
    }
    sum(s);
    for (size_t i = 0; i < s->a.n_runs; i++)
        asked += s->a.runs[i].ask;
    assert_int_equal(asked, RUNS_ASKED_MAX);
    assert_true(s->a.runs[24].refused);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

/* ---- CRCR_KNOWN_FAILURES=neutral ---- */

static void jobs_that_all_fail_on_main_too_make_it_neutral_where_that_is_forgiven(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    struct result_record *failed = job(s, "77", "b", "1", "failure", 2000);
    of_actions(failed);
    is_known(failed, KNOWN_MAIN);
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    assert_completed(s, "failure");
    s->view.forgive_known = true;
    assert_completed(s, "neutral");
    failed->known->reason = KNOWN_FLAKY; /* no other reason is forgiven */
    assert_completed(s, "failure");
    failed->known->reason = KNOWN_MAIN;
    s->view.more_jobs = true; /* what is not looked at may have failed */
    assert_completed(s, "action_required");
}

static void one_job_that_fails_only_here_makes_it_fail(void **state)
{
    struct scene *s = *state;
    s->view.forgive_known = true;
    is_known(job(s, "77", "a", "1", "failure", 2000), KNOWN_MAIN);
    struct result_record *here = job(s, "77", "b", "1", "timed_out", 2000);
    assert_completed(s, "timed_out");
    is_known(here, KNOWN_ONLY_HERE);
    assert_completed(s, "timed_out");
    here->known->reason = KNOWN_MAIN;
    here->run_complete = 1;
    assert_completed(s, "neutral");
    job(s, "77", "c", "1", "cancelled", 2000);
    assert_completed(s, "cancelled");
}

/* Without run_complete another job may still fail. */
static void a_failure_of_another_ci_that_is_forgiven_waits_for_the_other_jobs(void **state)
{
    struct scene *s = *state;
    s->view.forgive_known = true;
    is_known(job(s, "77", "a", "1", "failure", 2000), KNOWN_MAIN);
    struct result_record *last = job(s, "77", "b", "1", NULL, 2000);
    assert_open(s, "in_progress", AGGREGATE_BUSY);
    last->state = JOB_COMPLETED;
    last->conclusion = mem_dup("success");
    last->completed_ms = SENT_MS + 4000;
    now(s, 5000);
    assert_open(s, "in_progress", AGGREGATE_MAY_FOLLOW);
    last->run_complete = 1;
    assert_completed(s, "neutral");
}

static void a_run_that_went_wrong_otherwise_is_not_forgiven(void **state)
{
    static const char *const ends[] = { "cancelled", "timed_out", "startup_failure" };
    struct scene *s = *state;
    s->view.forgive_known = true;
    struct result_record *failed = job(s, "77", "a", "1", "failure", 2000);
    of_actions(failed);
    is_known(failed, KNOWN_MAIN);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        said(s, RUN_SAID_COMPLETED, ends[i], 1, 9000);
        assert_true(conclusion_is_bad(sum(s)->conclusion));
    }
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    assert_completed(s, "neutral");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dispatched_is_queued),
        TEST(a_waiting_dispatch_is_queued_and_says_so),
        TEST(a_failed_dispatch_is_a_failure),
        TEST(a_superseded_or_skipped_dispatch_starts_none_and_ends_one_as_cancelled),
        TEST(nobody_answering_is_timed_out_and_looked_for_then),
        TEST(a_job_after_the_time_out_opens_it_again),
        TEST(jobs_count_more_than_a_failed_dispatch),
        TEST(jobs_of_another_delivery_do_not_count),
        TEST(a_failure_of_another_ci_shows_at_once),
        TEST(green_of_another_ci_needs_run_complete),
        TEST(run_complete_does_not_hide_a_job_in_progress),
        TEST(or_nothing_in_progress_for_a_while),
        TEST(a_run_id_of_digits_alone_makes_no_run_of_actions),
        TEST(a_run_is_asked_about_5_15_30_s_after_its_last_job_then_each_minute),
        TEST(a_run_is_not_asked_about_while_a_job_is_in_progress),
        TEST(a_failed_job_of_actions_waits_for_its_run),
        TEST(the_conclusion_is_the_worst_of_run_and_jobs),
        TEST(a_run_of_actions_whose_jobs_were_all_skipped_is_skipped),
        TEST(what_nobody_has_heard_of_is_never_green),
        TEST(a_new_attempt_opens_it_again_until_github_says_that_it_ended),
        TEST(a_refused_question_falls_back_to_the_quiet_rule),
        TEST(a_refused_question_is_asked_again_after_another_job),
        TEST(a_run_that_never_ends_is_timed_out),
        TEST(no_more_than_20_runs_are_asked_about),
        TEST(jobs_that_all_fail_on_main_too_make_it_neutral_where_that_is_forgiven),
        TEST(one_job_that_fails_only_here_makes_it_fail),
        TEST(a_failure_of_another_ci_that_is_forgiven_waits_for_the_other_jobs),
        TEST(a_run_that_went_wrong_otherwise_is_not_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

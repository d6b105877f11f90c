/* Which jobs and runs count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/reporter/aggregate_scene.h"

/* ---- several jobs and runs ------------------------------------------------------------------- */

static void the_worst_of_a_matrix_counts(void **state)
{
    static const char *const worst_first[] = { "failure",         "timed_out", "cancelled",
                                               "action_required", "success",   "neutral",
                                               "skipped" };
    struct scene *s = *state;
    for (size_t i = 7; i-- > 0;) {
        char name[32];
        snprintf(name, sizeof(name), "job %zu", i);
        job(s, "77", name, "1", worst_first[i], 2000)->run_complete = 1;
        assert_completed(s, worst_first[i]);
    }
    assert_int_equal(s->a.n_bad, 4);
    assert_string_equal(s->a.jobs[0]->conclusion, "failure");
    assert_string_equal(s->a.jobs[6]->conclusion, "skipped");
}

static void a_job_that_the_sweep_ended_is_timed_out(void **state)
{
    struct scene *s = *state;
    struct result_record *silent = job(s, "77", "a", "1", NULL, 1000);
    silent->state = JOB_TIMED_OUT;
    silent->timed_out_ms = SENT_MS + 2000;
    assert_completed(s, "timed_out");
}

static void the_newest_attempt_of_each_which_jobs(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "2", "success", 9000)->run_complete = 1;
    job(s, "77", "a", "1", "failure", 2000);
    job(s, "77", "b", "1", "success", 2000);
    assert_completed(s, "success");
    assert_int_equal(s->a.n_jobs, 2);
}

static void attempt_10_is_newer_than_attempt_9(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "9", "failure", 2000);
    job(s, "77", "a", "10", "success", 9000)->run_complete = 1;
    assert_completed(s, "success");
}

static void jobs_of_one_name_in_one_attempt_all_count(void **state)
{
    struct scene *s = *state;
    struct result_record *twin = job(s, "77", "a", "1", "success", 2000);
    free(twin->check_run_id);
    twin->check_run_id = mem_dup("own");
    job(s, "77", "a", "1", "failure", 2000);
    assert_completed(s, "failure");
    assert_int_equal(s->a.n_jobs, 2);
}

static void a_newer_run_of_the_workflow_replaces_what_was_cancelled(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 9000));
    of_actions(job(s, "76", "a", "1", "cancelled", 3000));
    of_actions(job(s, "76", "b", "1", NULL, 1000)); /* the cancelling took its word */
    said(s, RUN_SAID_COMPLETED, "success", 1, 14000);
    assert_completed(s, "success");
    assert_int_equal(s->a.n_replaced, 2);
    assert_int_equal(s->a.n_runs, 1);
}

static void the_cancelled_newest_run_counts(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "cancelled", 3000));
    of_actions(
        job(s, "9", "a", "1", "success", 9000)); /* older by its number, though it began later */
    said(s, RUN_SAID_COMPLETED, "cancelled", 1, 14000);
    assert_open(s, "in_progress", AGGREGATE_RUN_GOING);
    struct run_answer answer = { .run_id = "9", .said = RUN_SAID_COMPLETED, .attempt = 1 };
    strcpy(answer.conclusion, "success");
    run_answers_set(&s->answers, &answer);
    assert_completed(s, "cancelled");
}

static void a_failure_of_the_older_run_still_counts(void **state)
{
    struct scene *s = *state;
    job(s, "u-1", "a", "1", "failure", 9000)->in_progress_ms = SENT_MS + 1000;
    job(s, "u-2", "a", "1", "success", 9500)->in_progress_ms = SENT_MS + 5000;
    assert_completed(s, "failure");
}

static void a_run_of_another_workflow_replaces_nothing(void **state)
{
    struct scene *s = *state;
    struct result_record *other = job(s, "u-2", "a", "1", "success", 9000);
    free(other->workflow_name);
    other->workflow_name = mem_dup("lint");
    job(s, "u-1", "a", "1", "cancelled", 3000);
    assert_completed(s, "cancelled");
}

/* In whatever order they began: the newest run of Actions is that of the highest number. */
static void runs_of_actions_and_of_another_ci_replace_nothing_of_each_other(void **state)
{
    struct scene *s = *state;
    struct result_record *older = job(s, "10", "a", "1", "success", 4000);
    struct result_record *newest = job(s, "20", "a", "1", "cancelled", 2000);
    of_actions(older);
    of_actions(newest);
    job(s, "u-1", "a", "1", "cancelled", 3000);
    jobs_mark_replaced(s->jobs, s->view.n_jobs);
    for (size_t i = 0; i < s->view.n_jobs; i++)
        assert_false(s->jobs[i].replaced);
}

static void a_rerun_under_a_new_id_replaces_the_same_job(void **state)
{
    struct scene *s = *state;
    job(s, "u-1", "a", "1", "failure", 3000);
    struct result_record *again = job(s, "u-2", "a", "1", "success", 9000);
    again->run_complete = 1;
    assert_completed(s, "success");
    assert_int_equal(s->a.n_replaced, 1);
}

static void more_jobs_than_are_looked_at_are_not_green(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "success", 2000)->run_complete = 1;
    s->view.more_jobs = true;
    assert_completed(s, "action_required");
}

static void a_missing_or_stale_conclusion_is_neutral(void **state)
{
    struct scene *s = *state;
    struct result_record *one = job(s, "77", "a", "1", "stale", 2000);
    one->run_complete = 1;
    assert_completed(s, "neutral");
}

/* One by one, among jobs of other deliveries and downstreams, and in another order. */
static void the_same_jobs_are_marked_as_replaced(void **state)
{
    struct scene *s = *state;
    const bool replaced[] = { true, false, true, false, false, false, false, false };
    job(s, "u-1", "a", "1", "failure", 3000); /* a re-run under a new id passed */
    job(s, "u-2", "a", "2", "success", 9000);
    job(s, "u-2", "a", "1", "failure", 8000); /* an earlier attempt */
    job(s, "u-2", "b", "1", "failure", 8000);
    struct result_record *other = job(s, "u-0", "a", "1", "failure", 2000);
    free(other->delivery_id);
    other->delivery_id = mem_dup("d-2");
    other = job(s, "u-0", "a", "1", "failure", 2000);
    free(other->repo);
    other->repo = mem_dup("org/five");
    for (int night = 1; night <= 2; night++) { /* each run is one of its own */
        char run[2] = { (char)('0' + night), '\0' };
        other = job(s, run, "n", "1", night == 1 ? "failure" : "success", 1000 * night);
        other->event_type = mem_dup("nightly");
    }
    jobs_mark_replaced(s->jobs, s->view.n_jobs);
    for (size_t i = 0; i < s->view.n_jobs; i++)
        assert_int_equal(s->jobs[i].replaced, replaced[i]);
    s->view.n_jobs = 4;
    sum(s);
    assert_int_equal(s->a.n_jobs, 2);
    for (size_t i = 0; i < 2; i++)
        assert_false(s->a.jobs[i]->replaced);
    s->view.n_jobs = 8; /* to be cleared */
}

static void an_attempt_of_a_nightly_run_replaces_the_one_before_under_any_delivery(void **state)
{
    struct scene *s = *state;
    static const char *const attempts[] = { "1", "2", "1", "1" };
    const bool replaced[] = { true, false, false, false };
    for (int i = 0; i < 4; i++) {
        struct result_record *one =
            job(s, i == 3 ? "78" : "77", i == 2 ? "b" : "a", attempts[i], "success", 1000 * i);
        free(one->delivery_id);
        one->delivery_id = mem_dup((const char *[]){ "n-1", "n-2", "n-3", "n-4" }[i]);
        one->event_type = mem_dup("periodic");
    }
    jobs_mark_replaced(s->jobs, s->view.n_jobs);
    for (size_t i = 0; i < s->view.n_jobs; i++)
        assert_int_equal(s->jobs[i].replaced, replaced[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_worst_of_a_matrix_counts),
        TEST(a_job_that_the_sweep_ended_is_timed_out),
        TEST(the_newest_attempt_of_each_which_jobs),
        TEST(attempt_10_is_newer_than_attempt_9),
        TEST(jobs_of_one_name_in_one_attempt_all_count),
        TEST(a_newer_run_of_the_workflow_replaces_what_was_cancelled),
        TEST(the_cancelled_newest_run_counts),
        TEST(a_failure_of_the_older_run_still_counts),
        TEST(a_run_of_another_workflow_replaces_nothing),
        TEST(runs_of_actions_and_of_another_ci_replace_nothing_of_each_other),
        TEST(a_rerun_under_a_new_id_replaces_the_same_job),
        TEST(more_jobs_than_are_looked_at_are_not_green),
        TEST(the_same_jobs_are_marked_as_replaced),
        TEST(an_attempt_of_a_nightly_run_replaces_the_one_before_under_any_delivery),
        TEST(a_missing_or_stale_conclusion_is_neutral),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

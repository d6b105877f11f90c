#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reporter/web/score.h"

/* Records on the stack, with borrowed text: they are never cleared. */
static struct result_record job(char *run, char *attempt, enum job_state state, char *conclusion)
{
    struct result_record r;
    result_record_init(&r);
    r.run_id = run;
    r.run_attempt = attempt;
    r.workflow_name = "ci";
    r.job_name = "build";
    r.state = state;
    r.conclusion = conclusion;
    return r;
}

static void cancelled_and_timed_out_count_against_the_pass_rate(void **state)
{
    (void)state;
    const struct result_record jobs[] = {
        job("1", "1", JOB_COMPLETED, "success"),
        job("2", "1", JOB_COMPLETED, "cancelled"),
        job("3", "1", JOB_TIMED_OUT, "timed_out"),
        job("4", "1", JOB_IN_PROGRESS, NULL),
    };
    struct score score = score_of(jobs, 4, SCORE_DISPATCHED);
    assert_int_equal(score.jobs, 4);
    assert_int_equal(score.completed, 3);
    assert_int_equal(score.successful, 1);
}

static void only_the_newest_attempt_of_a_job_counts(void **state)
{
    (void)state;
    const struct result_record jobs[] = {
        job("1", "9", JOB_COMPLETED, "failure"),
        job("1", "10", JOB_COMPLETED, "success"),
        job("2", "1", JOB_COMPLETED, "failure"),
    };
    struct score score = score_of(jobs, 3, SCORE_DISPATCHED);
    assert_int_equal(score.jobs, 2);
    assert_int_equal(score.successful, 1);
    assert_int_equal(score.completed, 2);
}

static void mean_queue_is_over_the_jobs_that_tell(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("1", "1", JOB_COMPLETED, "success"),
        job("2", "1", JOB_COMPLETED, "success"),
        job("3", "1", JOB_COMPLETED, "success"),
    };
    assert_int_equal(score_of(jobs, 3, SCORE_DISPATCHED).queue_mean_ms, -1);
    jobs[0].queue_ms = 1000;
    jobs[2].queue_ms = 2000;
    assert_int_equal(score_of(jobs, 3, SCORE_DISPATCHED).queue_mean_ms, 1500);
}

static void what_a_downstream_starts_itself_is_scored_apart(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("1", "1", JOB_COMPLETED, "success"),
        job("2", "1", JOB_COMPLETED, "failure"),
        job("3", "1", JOB_COMPLETED, "success"),
    };
    jobs[1].event_type = "nightly";
    jobs[2].event_type = "periodic";
    assert_int_equal(score_of(jobs, 3, SCORE_DISPATCHED).completed, 1);
    assert_int_equal(score_of(jobs, 3, SCORE_SELF).completed, 2);
    assert_int_equal(score_of(jobs, 3, SCORE_SELF).successful, 1);
}

static void the_newest_run_is_as_well_off_as_its_worst_job(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("9", "1", JOB_COMPLETED, "success"), job("9", "1", JOB_IN_PROGRESS, NULL),
        job("9", "2", JOB_COMPLETED, "success"), job("9", "1", JOB_COMPLETED, "cancelled"),
        job("8", "1", JOB_COMPLETED, "failure"),
    };
    jobs[1].job_name = "other";
    jobs[2].job_name = jobs[3].job_name = "again";
    struct jobs_score run = score_of_newest_run(jobs, 5);
    assert_ptr_equal(run.worst, &jobs[1]); /* one that runs is worse than a success */
    assert_int_equal(run.jobs, 3);
    assert_int_equal(run.running, 1);
    assert_int_equal(run.failed, 0);
    jobs[2].state = JOB_TIMED_OUT;
    run = score_of_newest_run(jobs, 5);
    assert_ptr_equal(run.worst, &jobs[2]);
    assert_int_equal(run.failed, 1);
    assert_null(score_of_newest_run(jobs, 0).worst);
}

static void jobs_of_one_downstream_are_summed_up(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("1", "1", JOB_COMPLETED, "success"),
        job("2", "1", JOB_COMPLETED, "failure"),
        job("3", "1", JOB_COMPLETED, "failure"),
    };
    jobs[0].repo = jobs[1].repo = "Org/One";
    jobs[2].repo = "org/two";
    struct jobs_score score = score_of_downstream(jobs, 3, STR_LIT("org/one"));
    assert_int_equal(score.jobs, 2);
    assert_int_equal(score.failed, 1);
    assert_ptr_equal(score.worst, &jobs[1]);
    assert_null(score_of_downstream(jobs, 3, STR_LIT("org/three")).worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_and_timed_out_count_against_the_pass_rate),
        cmocka_unit_test(only_the_newest_attempt_of_a_job_counts),
        cmocka_unit_test(what_a_downstream_starts_itself_is_scored_apart),
        cmocka_unit_test(jobs_of_one_downstream_are_summed_up),
        cmocka_unit_test(the_newest_run_is_as_well_off_as_its_worst_job),
        cmocka_unit_test(mean_queue_is_over_the_jobs_that_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

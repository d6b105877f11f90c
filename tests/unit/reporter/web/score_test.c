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
    struct score score = score_of(jobs, 4);
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
    struct score score = score_of(jobs, 3);
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
    assert_int_equal(score_of(jobs, 3).queue_mean_ms, -1);
    jobs[0].queue_ms = 1000;
    jobs[2].queue_ms = 2000;
    assert_int_equal(score_of(jobs, 3).queue_mean_ms, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_and_timed_out_count_against_the_pass_rate),
        cmocka_unit_test(only_the_newest_attempt_of_a_job_counts),
        cmocka_unit_test(mean_queue_is_over_the_jobs_that_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

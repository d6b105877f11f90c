#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reporter/aggregate.h"
#include "reporter/web/score.h"

/* Records on the stack, with borrowed text: they are never cleared. */
static struct result_record job(char *run, char *attempt, enum job_state state, char *conclusion)
{
    struct result_record r;
    result_record_init(&r);
    r.run_id = run;
    r.run_attempt = attempt;
    r.repo = "org/one";
    r.delivery_id = "d-1";
    r.check_run_id = "1";
    r.workflow_name = "ci";
    r.job_name = "build";
    r.state = state;
    r.conclusion = conclusion;
    return r;
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
    jobs_mark_replaced(jobs, 5);
    struct jobs_score run = score_of_newest_run(jobs, 5);
    assert_ptr_equal(run.worst, &jobs[1]); /* one that runs is worse than a success */
    assert_int_equal(run.jobs, 3);
    assert_int_equal(run.running, 1);
    assert_int_equal(run.failed, 0);
    jobs[2].state = JOB_TIMED_OUT;
    jobs[2].conclusion = "timed_out";
    run = score_of_newest_run(jobs, 5);
    assert_ptr_equal(run.worst, &jobs[2]);
    assert_int_equal(run.failed, 1);
    assert_null(score_of_newest_run(jobs, 0).worst);
}

static void jobs_of_one_downstream_are_summed_up(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("1", "1", JOB_COMPLETED, "success"), job("2", "1", JOB_COMPLETED, "failure"),
        job("1", "2", JOB_COMPLETED, "failure"), /* run ids of different CIs may be the same */
    };
    jobs[0].repo = jobs[1].repo = "Org/One";
    jobs[2].repo = "org/two";
    struct jobs_score score = score_of_downstream(jobs, 3, STR_LIT("org/one"));
    assert_int_equal(score.jobs, 2);
    assert_int_equal(score.failed, 1);
    assert_ptr_equal(score.worst, &jobs[1]);
    assert_null(score_of_downstream(jobs, 3, STR_LIT("org/three")).worst);
}

/* The cancelled run's last word comes after the newer run's. */
static void a_run_that_is_replaced_is_not_the_newest(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("8", "1", JOB_COMPLETED, "cancelled"),
        job("9", "1", JOB_COMPLETED, "success"),
    };
    jobs[0].in_progress_ms = 1000;
    jobs[0].completed_ms = 9000;
    jobs[1].in_progress_ms = 2000;
    jobs[1].completed_ms = 8000;
    jobs_mark_replaced(jobs, 2);
    struct jobs_score run = score_of_newest_run(jobs, 2);
    assert_ptr_equal(run.worst, &jobs[1]);
    assert_int_equal(run.jobs, 1);
    assert_int_equal(run.began_ms, 2000);
}

static void an_l4_blocks_until_all_its_jobs_have_ended_well(void **state)
{
    (void)state;
    struct dispatch_view d = { .level = 4, .outcome = "dispatched", .action = "opened" };
    struct jobs_score score = { .jobs = 2 };
    assert_false(score_blocks(&score, &d, 4));
    score.running = 1;
    assert_true(score_blocks(&score, &d, 4));
    assert_false(score_blocks(&score, &d, 3));
    score = (struct jobs_score){ .jobs = 2, .failed = 1 };
    assert_true(score_blocks(&score, NULL, 4));
    score = (struct jobs_score){ .jobs = 0 };
    assert_true(score_blocks(&score, &d, 4));
    assert_false(score_blocks(&score, NULL, 4));
    d = (struct dispatch_view){ .level = 4, .outcome = "dispatched", .action = "closed" };
    assert_false(score_blocks(&score, &d, 4));
    d = (struct dispatch_view){ .level = 4, .outcome = "superseded" };
    assert_false(score_blocks(&score, &d, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_one_downstream_are_summed_up),
        cmocka_unit_test(an_l4_blocks_until_all_its_jobs_have_ended_well),
        cmocka_unit_test(a_run_that_is_replaced_is_not_the_newest),
        cmocka_unit_test(the_newest_run_is_as_well_off_as_its_worst_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

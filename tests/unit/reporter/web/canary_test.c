#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/model/canary.h"
#include "reporter/aggregate.h"
#include "reporter/web/canary.h"

#define NOW 1790000000000LL

/* On the stack, with borrowed text: never cleared. */
static struct result_record job(char *run, char *name, enum job_state state, char *conclusion)
{
    struct result_record r;
    result_record_init(&r);
    r.run_id = run;
    r.run_attempt = "1";
    r.repo = CANARY_REPO;
    r.delivery_id = run;
    r.check_run_id = name;
    r.workflow_name = "canary";
    r.job_name = name;
    r.state = state;
    r.conclusion = conclusion;
    r.in_progress_ms = NOW - 1000;
    r.completed_ms = state == JOB_COMPLETED ? NOW : 0;
    return r;
}

static void what_should_fail_and_fails_is_as_expected(void **state)
{
    (void)state;
    struct result_record jobs[] = {
        job("2", "l2-pass", JOB_COMPLETED, "success"),
        job("2", "l2-xfail", JOB_COMPLETED, "failure"),
        job("2", "l3-xcancel", JOB_COMPLETED, "success"),
        job("2", "l4", JOB_IN_PROGRESS, NULL),
        job("1", "l2-pass", JOB_COMPLETED, "failure"),
    };
    struct canary canary;
    jobs[4].completed_ms = NOW + 5;
    canary_from_jobs(&canary, jobs, 5, false);
    assert_true(canary.known);
    assert_int_equal(canary.jobs, 4);
    assert_int_equal(canary.running, 1);
    assert_int_equal(canary.unexpected, 1);
    assert_int_equal(canary.result_ms, NOW + 5);
    assert_int_equal(canary.began_ms, NOW - 1000);
    assert_string_equal(canary.delivery, "2");
}

static void one_that_is_not_known_has_no_card_and_one_that_is_listed_has(void **state)
{
    (void)state;
    struct canary canary;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(1000);
    canary_from_jobs(&canary, NULL, 0, false);
    canary_put(&text, &canary);
    assert_true(str_is(buf_str(&text), "\"canary\":null"));
    canary_from_jobs(&canary, NULL, 0, true);
    buf_reset(&text);
    canary_put(&text, &canary);
    assert_true(str_find_str(buf_str(&text), STR_LIT("\"result_at\":null")) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_should_fail_and_fails_is_as_expected),
        cmocka_unit_test(one_that_is_not_known_has_no_card_and_one_that_is_listed_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

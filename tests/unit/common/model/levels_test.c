/* Each figure is worked out by hand in the comment above its assertion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/model/canary.h"
#include "common/model/ids.h"
#include "common/model/levels.h"

#define MINUTE 60000
#define HOUR   (60 * (int64_t)MINUTE)
#define DAY    (24 * HOUR)
#define NOW    (1000 * DAY)

/* One row, with what most tests do not care about filled in. */
struct job {
    const char *repo, *run, *name, *attempt, *conclusion;
    enum job_state state;                         /* JOB_NONE: completed */
    int64_t started_ms, completed_ms, written_ms; /* before NOW; 0: an hour, none, when completed */
    int64_t queue_ms, execution_ms;               /* 0: unknown */
    const char *event_type;                       /* NULL: pull_request */
};

static void put(struct levels *l, struct job job)
{
    struct result_record r;
    struct buf CLEANUP(buf_clear) key;
    char started[CLOCK_TEXT_SIZE], completed[CLOCK_TEXT_SIZE], check[64];
    const char *repo = job.repo ? job.repo : "org/a", *run = job.run ? job.run : "1";
    const char *name = job.name ? job.name : "build", *attempt = job.attempt ? job.attempt : "1";
    buf_init(&key, 4096);
    snprintf(check, sizeof(check), "%s-%s-%s", run, name, attempt);
    job_key(&key, str_of(repo), STR_LIT("d"), STR_LIT("ci"), str_of(name), str_of(check));
    clock_format(NOW - job.completed_ms - (job.started_ms ? job.started_ms : HOUR), started);
    clock_format(NOW - job.completed_ms, completed);
    result_record_init(&r);
    const char *const fields[][2] = {
        { "dynamoKey", key.ptr },   { "downstream_repo", repo },
        { "delivery_id", "d" },     { "workflow_name", "ci" },
        { "run_id", run },          { "job_name", name },
        { "run_attempt", attempt }, { "conclusion", job.conclusion ? job.conclusion : "success" },
        { "started_at", started },  { "completed_at", completed },
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        result_record_set(&r, str_of(fields[i][0]), str_of(fields[i][1]));
    r.state = job.state == JOB_NONE ? JOB_COMPLETED : job.state;
    const char *type = job.event_type ? job.event_type : "pull_request";
    result_record_set(&r, STR_LIT("event_type"), str_of(type));
    r.pr_number = str_is(str_of(type), "pull_request") ? 7 : 0;
    r.queue_ms = job.queue_ms ? job.queue_ms : -1;
    r.execution_ms = job.execution_ms ? job.execution_ms : -1;
    levels_put(l, &r, NOW - (job.written_ms ? job.written_ms : job.completed_ms));
    result_record_clear(&r);
}

static struct level_figures figures(struct levels *l, const char *repo, int days)
{
    struct level_figures f;
    levels_figures(l, str_of(repo), RUN_PULL, NOW - days * DAY, NOW, 3 * HOUR, &f);
    return f;
}

static void pass_rate_counts_success_of_all_that_ended(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .run = "1" });
    put(l, (struct job){ .run = "2", .conclusion = "failure" });
    put(l, (struct job){ .run = "3", .conclusion = "cancelled" });
    put(l, (struct job){ .run = "4", .conclusion = "timed_out" });
    put(l, (struct job){ .run = "5", .state = JOB_TIMED_OUT, .conclusion = "" });
    put(l, (struct job){ .run = "6", .state = JOB_IN_PROGRESS, .conclusion = "" });
    struct level_figures f = figures(l, "ORG/A", 7);
    assert_int_equal(f.jobs, 5); /* the sixth has not ended */
    assert_int_equal(f.successful, 1);
    assert_int_equal(f.timed_out, 2); /* as reported, and as swept */
    levels_free(l);
}

static void only_the_newest_attempt_of_a_which_jobs(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .attempt = "1", .conclusion = "failure" });
    put(l, (struct job){ .attempt = "10" });
    put(l, (struct job){ .attempt = "9", .conclusion = "failure" });
    put(l, (struct job){ .name = "test", .attempt = "1", .conclusion = "failure" });
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.jobs, 2); /* build 10, test 1 */
    assert_int_equal(f.successful, 1);
    put(l, (struct job){ .name = "test", .attempt = "2", .state = JOB_IN_PROGRESS });
    assert_int_equal(figures(l, "org/a", 7).jobs, 1); /* test runs again: its end is not known */
    levels_free(l);
}

static void attempts_that_are_names_have_an_order_too(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .attempt = "first", .conclusion = "failure" });
    put(l, (struct job){ .attempt = "second" });
    put(l, (struct job){ .attempt = "3", .conclusion = "failure" });
    assert_int_equal(figures(l, "org/a", 7).jobs, 1);
    assert_int_equal(figures(l, "org/a", 7).successful, 1);
    levels_free(l);
}

static void the_newest_row_of_a_key_wins(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .state = JOB_IN_PROGRESS, .conclusion = "" });
    put(l, (struct job){ .state = JOB_TIMED_OUT, .conclusion = "" });
    assert_int_equal(figures(l, "org/a", 7).timed_out, 1);
    put(l, (struct job){ .conclusion = "success" });
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.jobs, 1);
    assert_int_equal(f.timed_out, 0);
    assert_int_equal(f.successful, 1);
    levels_free(l);
}

static void a_window_takes_what_ended_in_it(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .run = "1", .completed_ms = 7 * DAY - 1 });
    put(l, (struct job){ .run = "2", .completed_ms = 7 * DAY });
    put(l, (struct job){ .run = "3", .completed_ms = 13 * DAY });
    put(l, (struct job){ .run = "4", .completed_ms = 15 * DAY });
    assert_int_equal(figures(l, "org/a", 7).jobs, 1);
    assert_int_equal(figures(l, "org/a", 7).runs, 1);
    assert_int_equal(figures(l, "org/a", 14).jobs, 3);
    assert_int_equal(figures(l, "org/b", 14).jobs, 0);
    levels_free(l);
}

static void nobody_reports_out_of_the_window_by_an_end_in_the_future(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .conclusion = "failure", .completed_ms = -400 * DAY, .written_ms = DAY });
    assert_int_equal(figures(l, "org/a", 7).jobs, 1);
    levels_free(l);
}

static void queue_is_the_mean_and_a_rerun_keeps_that_of_the_first_attempt(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .run = "1", .queue_ms = 10 * MINUTE });
    put(l, (struct job){ .run = "2", .queue_ms = 20 * MINUTE, .conclusion = "failure" });
    put(l, (struct job){ .run = "2", .attempt = "2" });
    put(l, (struct job){ .run = "3" }); /* reports completed only: not known */
    put(l, (struct job){ .run = "1", .name = "test", .queue_ms = 10 * MINUTE }); /* of the run */
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.queued, 2);
    assert_int_equal(f.queue_mean_ms, 15 * MINUTE); /* (10 + 20) / 2 */
    assert_int_equal(figures(l, "org/b", 7).queue_mean_ms, -1);
    levels_free(l);
}

static void e2e_of_a_run_is_its_queue_and_the_span_of_its_jobs(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    /* 3 h to 1 h ago, and 2 h to 30 min ago: 2 h 30 min; the queue is 5 min: rows from before it
     * was the run's differ */
    put(l, (struct job){ .name = "build",
                         .started_ms = 2 * HOUR,
                         .completed_ms = HOUR,
                         .queue_ms = 20 * MINUTE });
    put(l, (struct job){ .name = "test",
                         .started_ms = 90 * MINUTE,
                         .completed_ms = 30 * MINUTE,
                         .queue_ms = 5 * MINUTE });
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.runs, 1);
    assert_int_equal(f.e2e_median_ms, 155 * MINUTE);
    put(l, (struct job){ .name = "docs", .state = JOB_IN_PROGRESS });
    assert_int_equal(figures(l, "org/a", 7).runs, 0); /* it is not over */
    levels_free(l);
}

static void levels_go_by_pull_requests_alone_and_nightlies_stand_beside(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    struct level_figures beside;
    char run[16];
    for (int i = 0; i < 10; i++) {
        snprintf(run, sizeof(run), "%d", i);
        put(l, (struct job){ .run = run, .conclusion = i < 5 ? "failure" : "success" });
    }
    for (int i = 0; i < 90; i++) {
        snprintf(run, sizeof(run), "n%d", i);
        put(l, (struct job){ .run = run, .event_type = i % 2 ? "nightly" : "periodic" });
    }
    put(l, (struct job){ .run = "p", .event_type = "push", .conclusion = "failure" });
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.jobs, 10);
    assert_int_equal(f.successful, 5);
    assert_int_equal(f.runs, 10);
    levels_figures(l, STR_LIT("org/a"), RUN_SELF, NOW - 7 * DAY, NOW, 3 * HOUR, &beside);
    assert_int_equal(beside.jobs, 90);
    assert_int_equal(beside.successful, 90);
    levels_free(l);
}

static void the_median_of_an_even_number_is_halfway(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    const int64_t took[] = { 4 * HOUR, HOUR, 2 * HOUR };
    put(l, (struct job){ .run = "0", .started_ms = took[0] });
    put(l, (struct job){ .run = "1", .started_ms = took[1] });
    assert_int_equal(figures(l, "org/a", 7).e2e_median_ms, 150 * MINUTE); /* of 1 h and 4 h */
    put(l, (struct job){ .run = "2", .started_ms = took[2] });
    assert_int_equal(figures(l, "org/a", 7).e2e_median_ms, 2 * HOUR);
    assert_int_equal(figures(l, "org/b", 7).e2e_median_ms, -1);
    levels_free(l);
}

static void overrun_counts_jobs_over_the_limit_but_none_that_timed_out(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    put(l, (struct job){ .run = "1", .execution_ms = 3 * HOUR });
    put(l, (struct job){ .run = "2", .execution_ms = 3 * HOUR + 1 });
    put(l, (struct job){ .run = "3", .execution_ms = 6 * HOUR, .conclusion = "timed_out" });
    put(l, (struct job){ .run = "4" });
    struct level_figures f = figures(l, "org/a", 7);
    assert_int_equal(f.timed, 2);
    assert_int_equal(f.overrun, 1);
    levels_free(l);
}

static void canary_jobs_succeed_by_ending_as_they_are_named(void **state)
{
    (void)state;
    struct levels *l = levels_new();
    const char *repo = "PyTorch/crcr-test";
    put(l, (struct job){ .repo = repo, .name = "l2-xfail", .conclusion = "failure" });
    put(l, (struct job){ .repo = repo, .name = "XCancel (a)", .conclusion = "cancelled" });
    put(l,
        (struct job){
            .repo = repo, .name = "xtimeout", .state = JOB_TIMED_OUT, .conclusion = "timed_out" });
    put(l, (struct job){ .repo = repo, .name = "plain", .conclusion = "success" });
    struct level_figures f = figures(l, CANARY_REPO, 7);
    assert_int_equal(f.jobs, 4);
    assert_int_equal(f.successful, 4);
    assert_int_equal(f.timed_out, 0); /* the one that did was meant to */
    put(l, (struct job){ .repo = repo, .run = "2", .name = "xfail", .conclusion = "success" });
    put(l, (struct job){ .repo = repo, .run = "2", .name = "xcancel", .conclusion = "timed_out" });
    put(l, (struct job){ .repo = "org/a", .name = "xfail", .conclusion = "failure" });
    f = figures(l, CANARY_REPO, 7);
    assert_int_equal(f.jobs, 6);
    assert_int_equal(f.successful, 4);
    assert_int_equal(f.timed_out, 1);
    assert_int_equal(figures(l, "org/a", 7).successful, 0);
    levels_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pass_rate_counts_success_of_all_that_ended),
        cmocka_unit_test(only_the_newest_attempt_of_a_which_jobs),
        cmocka_unit_test(attempts_that_are_names_have_an_order_too),
        cmocka_unit_test(the_newest_row_of_a_key_wins),
        cmocka_unit_test(a_window_takes_what_ended_in_it),
        cmocka_unit_test(nobody_reports_out_of_the_window_by_an_end_in_the_future),
        cmocka_unit_test(queue_is_the_mean_and_a_rerun_keeps_that_of_the_first_attempt),
        cmocka_unit_test(levels_go_by_pull_requests_alone_and_nightlies_stand_beside),
        cmocka_unit_test(e2e_of_a_run_is_its_queue_and_the_span_of_its_jobs),
        cmocka_unit_test(the_median_of_an_even_number_is_halfway),
        cmocka_unit_test(overrun_counts_jobs_over_the_limit_but_none_that_timed_out),
        cmocka_unit_test(canary_jobs_succeed_by_ending_as_they_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

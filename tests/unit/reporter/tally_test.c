/* Each figure is worked out by hand. That they are those of `crcrctl levels`:
 * tests/integration/test_reporter_hours.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/model/canary.h"
#include "reporter/tally.h"

#define HOUR 3600000LL
#define NOON (480012 * HOUR) /* of a day */
#define MAX  64

/* Jobs with borrowed text, never cleared; what most tests do not care about is filled in. */
struct scene {
    struct result_record jobs[MAX];
    char text[MAX][3][CLOCK_TEXT_SIZE];
    size_t n;
};

/* It ran for an hour and ended at end_ms, also as its CI says it. */
static struct result_record *add(struct scene *s, char *run, char *name, char *attempt,
                                 char *conclusion, int64_t end_ms)
{
    struct result_record *job = &s->jobs[s->n];
    result_record_init(job);
    snprintf(s->text[s->n][2], CLOCK_TEXT_SIZE, "%zu", s->n);
    clock_format(end_ms - HOUR, s->text[s->n][0]);
    clock_format(end_ms, s->text[s->n][1]);
    job->key = s->text[s->n][2];
    job->started_at = s->text[s->n][0];
    job->completed_at = s->text[s->n][1];
    job->repo = "org/a";
    job->pr_number = 7;
    job->workflow_name = "ci";
    job->run_id = run;
    job->job_name = name;
    job->run_attempt = attempt;
    job->state = JOB_COMPLETED;
    job->conclusion = conclusion;
    job->completed_ms = end_ms;
    job->execution_ms = HOUR;
    s->n++;
    return job;
}

static void assert_tally(const struct scene *s, const char *lines)
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    tally(s->jobs, s->n, &text);
    assert_string_equal(buf_str(&text).ptr, lines);
    struct scene turned = { .n = s->n }; /* the same in another order */
    for (size_t i = 0; i < s->n; i++)
        turned.jobs[i] = s->jobs[s->n - 1 - i];
    buf_reset(&text);
    tally(turned.jobs, turned.n, &text);
    assert_string_equal(buf_str(&text).ptr, lines);
}

/* The value of a line, or -1. */
static int64_t value(const struct scene *s, const char *name)
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    tally(s->jobs, s->n, &text);
    struct str lines = buf_str(&text), line, hour, field;
    int64_t n = -1;
    while (str_split(&lines, '\n', &line))
        if (str_split(&line, ' ', &hour) && str_split(&line, ' ', &field) && str_is(field, name))
            assert_true(str_to_i64(line, &n));
    return n;
}

static void a_which_jobs_in_the_hour_in_which_it_ended_by_the_relays_clock(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    struct result_record *job = add(&s, "1", "build", "1", "success", NOON + 1);
    job->queue_ms = 50; /* bucket 0. An hour: 0.1 s * g^104.8, bucket 105 */
    job->completed_at = "1990-01-01T00:00:00.000Z"; /* the end that the CI says is for the E2E */
    job->started_at = "1990-01-01T00:00:00.000Z";
    assert_tally(&s, "480012 p.done 1\n480012 p.ok 1\n480012 p.runs 1\n480012 p.queue 50\n"
                     "480012 p.q0 1\n480012 p.took 3600000\n480012 p.t105 1\n480012 p.e2e 50\n"
                     "480012 p.e0 1\n");
}

static void every_way_to_end_counts_and_what_runs_does_not(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "a", "1", "success", NOON);
    add(&s, "2", "a", "1", "failure", NOON);
    add(&s, "3", "a", "1", "cancelled", NOON);
    add(&s, "4", "a", "1", "timed_out", NOON);
    struct result_record *swept = add(&s, "5", "a", "1", NULL, NOON);
    swept->state = JOB_TIMED_OUT;
    swept->timed_out_ms = NOON;
    swept->completed_ms = -1;
    add(&s, "5", "b", "1", NULL, NOON)->state = JOB_IN_PROGRESS;
    add(&s, "6", "a", "1", NULL, NOON)->state = JOB_IN_PROGRESS;
    assert_int_equal(value(&s, "p.done"), 5);
    assert_int_equal(value(&s, "p.ok"), 1);
    assert_int_equal(value(&s, "p.cancelled"), 1);
    assert_int_equal(value(&s, "p.timed_out"), 2);
    assert_int_equal(value(&s, "p.runs"), 4); /* the fifth and the sixth go on */
}

static void the_canary_succeeds_by_ending_as_it_is_named(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "l2-xcancel", "1", "cancelled", NOON)->repo = CANARY_REPO;
    assert_int_equal(value(&s, "p.ok"), 1);
    assert_int_equal(value(&s, "p.cancelled"), -1);
}

static void the_newest_attempt_of_each_which_jobs_and_keeps_the_first_queue(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "a", "9", "failure", NOON)->queue_ms = 7000;
    add(&s, "1", "a", "10", "success", NOON + HOUR);
    add(&s, "1", "b", "1", "success", NOON);
    add(&s, "2", "a", "1", "failure", NOON); /* another run */
    assert_int_equal(value(&s, "p.queue"), 7000);
    struct result_record *again = add(&s, "2", "a", "2", NULL, NOON);
    again->state = JOB_IN_PROGRESS; /* run 2 goes on */
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    tally(s.jobs, s.n, &text);
    /* b; then a in its tenth attempt, with the run: 7 s and from 11:00, when b began, to 13:00 */
    assert_string_equal(buf_str(&text).ptr,
                        "480012 p.done 1\n480012 p.ok 1\n480012 p.took 3600000\n480012 p.t105 1\n"
                        "480013 p.done 1\n480013 p.ok 1\n480013 p.runs 1\n480013 p.queue 7000\n"
                        "480013 p.q43 1\n480013 p.took 3600000\n480013 p.t105 1\n"
                        "480013 p.e2e 7207000\n480013 p.e112 1\n");
}

static void legs_of_one_name_all_count_and_of_named_attempts_the_last(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "leg", "2", "success", NOON);
    add(&s, "1", "leg", "2", "failure", NOON);
    add(&s, "2", "a", "first", "failure", NOON);
    add(&s, "2", "a", "second", "success", NOON);
    assert_int_equal(value(&s, "p.done"), 3);
    assert_int_equal(value(&s, "p.runs"), 2);
}

static void nightly_and_periodic_runs_count_apart(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "a", "1", "success", NOON)->event_type = "pull_request";
    add(&s, "1", "a", "1", "failure", NOON)->event_type = "nightly";
    add(&s, "2", "a", "1", "failure", NOON)->event_type = "periodic";
    assert_int_equal(value(&s, "p.done"), 1);
    assert_int_equal(value(&s, "n.done"), 2);
    assert_int_equal(value(&s, "n.runs"), 2);
    add(&s, "8", "a", "1", "failure", NOON)->pr_number = 0; /* a push */
    assert_int_equal(value(&s, "u.done"), 1);
    assert_int_equal(value(&s, "u.runs"), 1);
    assert_int_equal(value(&s, "n.done"), 2);
}

/* Whatever they call their deliveries and workflows; a job is a name in a workflow. */
static void the_jobs_of_one_nightly_run_are_one_run(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    for (int i = 0; i < 4; i++) {
        static char *const deliveries[] = { "n-1", "n-2", "n-3", "n-4" };
        struct result_record *job = add(&s, "9", i < 2 ? "a" : "b", "1", "success", NOON);
        job->event_type = "nightly";
        job->delivery_id = deliveries[i];
        job->workflow_name = i % 2 ? "gpu" : "cpu";
    }
    assert_int_equal(value(&s, "n.done"), 4);
    assert_int_equal(value(&s, "n.runs"), 1);
    struct result_record *again = add(&s, "9", "a", "2", "failure", NOON);
    again->event_type = "nightly";
    again->delivery_id = "n-5";
    again->workflow_name = "gpu";
    assert_int_equal(value(&s, "n.done"), 4);
    assert_int_equal(value(&s, "n.ok"), 3);
    for (size_t i = 0; i < s.n; i++)
        s.jobs[i].event_type = "push"; /* of dispatches each has a run of its own */
    assert_int_equal(value(&s, "p.runs"), 5);
}

static void an_end_that_the_ci_says_is_after_ours_is_not_believed(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    add(&s, "1", "a", "1", "success", NOON)->completed_at = "2124-01-01T00:00:00.000Z";
    assert_int_equal(value(&s, "p.e2e"), HOUR);
    struct result_record *unknown = add(&s, "2", "a", "1", "success", NOON);
    unknown->completed_ms = -1;
    unknown->completed_at = NULL;
    assert_int_equal(value(&s, "p.done"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_which_jobs_in_the_hour_in_which_it_ended_by_the_relays_clock),
        cmocka_unit_test(every_way_to_end_counts_and_what_runs_does_not),
        cmocka_unit_test(the_canary_succeeds_by_ending_as_it_is_named),
        cmocka_unit_test(the_newest_attempt_of_each_which_jobs_and_keeps_the_first_queue),
        cmocka_unit_test(legs_of_one_name_all_count_and_of_named_attempts_the_last),
        cmocka_unit_test(nightly_and_periodic_runs_count_apart),
        cmocka_unit_test(the_jobs_of_one_nightly_run_are_one_run),
        cmocka_unit_test(an_end_that_the_ci_says_is_after_ours_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

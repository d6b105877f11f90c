#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/callback.h"
#include "job_scene.h"
#include "reporter/ended_runs.h"

#define MIN_MS 60000
#define NOW_MS 1795231200000LL

struct scene {
    struct result_record jobs[4];
    size_t n;
    struct run_answers answers;
    struct open_runs runs;
    int64_t look_ms;
};

/* A job of a run that reported so long ago; ended: completed at that time, else in progress. */
static struct result_record *job_add(struct scene *s, const char *run_id, const char *attempt,
                                     int64_t minutes, bool ended)
{
    struct result_record *job = &s->jobs[s->n++];
    job_fill(job, ended ? JOB_COMPLETED : JOB_IN_PROGRESS, ended ? "success" : NULL);
    text_set(&job->run_id, run_id);
    text_set(&job->run_attempt, attempt);
    text_set(&job->issuer, CALLBACK_ISSUER_ACTIONS);
    text_set(&job->head_sha, "abcdef1234");
    job->level = 2;
    *(ended ? &job->completed_ms : &job->in_progress_ms) = NOW_MS - minutes * MIN_MS;
    return job;
}

static void answer_add(struct scene *s, const char *run_id, enum run_said said, int64_t attempt,
                       const char *conclusion, int64_t minutes)
{
    struct run_answer answer = { .said = said,
                                 .attempt = attempt,
                                 .asked_ms = NOW_MS - minutes * MIN_MS };
    snprintf(answer.run_id, sizeof(answer.run_id), "%s", run_id);
    snprintf(answer.conclusion, sizeof(answer.conclusion), "%s", conclusion);
    run_answers_set(&s->answers, &answer);
}

static const char *asked(struct scene *s)
{
    ended_runs_find(s->jobs, s->n, &s->runs);
    return ended_runs_ask(&s->runs, &s->answers, NOW_MS, &s->look_ms);
}

/* What the first job ends with. */
static const char *end(struct scene *s)
{
    ended_runs_find(s->jobs, s->n, &s->runs);
    return ended_runs_end(&s->runs, &s->answers, &s->jobs[0], NOW_MS);
}

static void clear(struct scene *s)
{
    for (size_t i = 0; i < s->n; i++)
        result_record_clear(&s->jobs[i]);
    run_answers_clear(&s->answers);
    *s = (struct scene){ .n = 0 };
}

static void a_run_is_asked_10_min_after_the_last_news_of_any_of_its_jobs(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 30, false);
    assert_string_equal(asked(&s), "7");
    job_add(&s, "7", "1", 4, true);
    assert_null(asked(&s));
    assert_int_equal(s.look_ms, NOW_MS + 6 * MIN_MS);
    clear(&s);
    job_add(&s, "7", "1", 10, false);
    assert_string_equal(asked(&s), "7");
    clear(&s);
}

static void it_is_asked_again_every_10_min(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 60, false);
    answer_add(&s, "7", RUN_SAID_GOING, 1, "", 9);
    assert_null(asked(&s));
    assert_int_equal(s.look_ms, NOW_MS + MIN_MS);
    answer_add(&s, "7", RUN_SAID_GOING, 1, "", 10);
    assert_string_equal(asked(&s), "7");
    answer_add(&s, "7", RUN_SAID_NOTHING, 0, "", 10); /* a limit, or no answer */
    assert_string_equal(asked(&s), "7");
    clear(&s);
}

static void the_soonest_of_several_runs_is_when_to_look(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 2, false);
    job_add(&s, "8", "1", 9, false);
    job_add(&s, "9", "1", 5, false);
    assert_null(asked(&s));
    assert_int_equal(s.look_ms, NOW_MS + MIN_MS);
    clear(&s);
}

static void what_github_refuses_is_not_asked_again_until_there_is_news(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 60, false);
    answer_add(&s, "7", RUN_SAID_NO, 0, "", 50);
    assert_null(asked(&s));
    assert_int_equal(s.look_ms, 0);
    job_add(&s, "7", "1", 20, true);
    assert_string_equal(asked(&s), "7");
    clear(&s);
}

static void only_open_jobs_of_actions_with_a_proven_dispatch_are_asked_for(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    struct result_record *job = job_add(&s, "7", "1", 60, false);
    text_set(&job->issuer, CALLBACK_ISSUER_BUILDKITE);
    assert_null(asked(&s));
    text_set(&job->issuer, CALLBACK_ISSUER_ACTIONS);
    text_set(&job->event_type, "nightly");
    assert_null(asked(&s));
    text_set(&job->event_type, "pull_request");
    job->level = 1;
    assert_null(asked(&s));
    job->level = 2;
    job->state = JOB_TIMED_OUT;
    assert_null(asked(&s));
    job->state = JOB_IN_PROGRESS;
    assert_string_equal(asked(&s), "7");
    clear(&s);
}

static void a_run_that_completed_ends_its_open_jobs_with_its_conclusion(void **state)
{
    (void)state;
    static const struct {
        const char *run, *job;
    } cases[] = { { "failure", "failure" },         { "cancelled", "cancelled" },
                  { "success", "success" },         { "timed_out", "timed_out" },
                  { "startup_failure", "failure" }, { "stale", "neutral" },
                  { "a_new_word", "failure" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene s = { .n = 0 };
        job_add(&s, "7", "1", 60, false);
        assert_null(end(&s));
        answer_add(&s, "7", RUN_SAID_COMPLETED, 1, cases[i].run, 0);
        assert_null(asked(&s));
        assert_string_equal(end(&s), cases[i].job);
        clear(&s);
    }
}

static void a_run_that_goes_on_ends_nothing(void **state)
{
    (void)state;
    static const enum run_said said[] = { RUN_SAID_GOING, RUN_SAID_NO, RUN_SAID_NOTHING };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct scene s = { .n = 0 };
        job_add(&s, "7", "1", 60, false);
        answer_add(&s, "7", said[i], 1, "failure", 0);
        assert_null(end(&s));
        clear(&s);
    }
}

/* The aggregate asks sooner: the job's own report may be on its way. */
static void no_job_ends_within_10_min_of_the_last_news(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 60, false);
    job_add(&s, "7", "1", 9, true);
    answer_add(&s, "7", RUN_SAID_COMPLETED, 1, "failure", 0);
    assert_null(asked(&s));
    assert_int_equal(s.look_ms, NOW_MS + MIN_MS);
    assert_null(end(&s));
    clear(&s);
}

static void an_attempt_that_was_repeated_has_ended(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "1", 60, false);
    answer_add(&s, "7", RUN_SAID_GOING, 2, "", 0);
    assert_string_equal(end(&s), "cancelled");
    job_add(&s, "7", "2", 60, false); /* which goes on */
    assert_string_equal(end(&s), "cancelled");
    assert_null(ended_runs_end(&s.runs, &s.answers, &s.jobs[1], NOW_MS));
    clear(&s);
}

static void an_answer_about_an_earlier_attempt_says_nothing_of_a_later_one(void **state)
{
    (void)state;
    struct scene s = { .n = 0 };
    job_add(&s, "7", "2", 60, false);
    answer_add(&s, "7", RUN_SAID_COMPLETED, 1, "failure", 30);
    assert_null(end(&s));
    assert_string_equal(asked(&s), "7");
    clear(&s);
}

static void runs_beyond_the_limit_are_left_to_the_time_out(void **state)
{
    (void)state;
    struct result_record jobs[OPEN_RUNS_MAX + 1];
    struct open_runs runs;
    struct run_answers answers = { NULL, 0 };
    int64_t look_ms;
    for (size_t i = 0; i <= OPEN_RUNS_MAX; i++) {
        struct scene s = { .n = 0 };
        char run_id[8];
        snprintf(run_id, sizeof(run_id), "%zu", i + 1);
        jobs[i] = *job_add(&s, run_id, "1", 60, false);
    }
    ended_runs_find(jobs, OPEN_RUNS_MAX + 1, &runs);
    assert_int_equal(runs.n, OPEN_RUNS_MAX);
    assert_string_equal(ended_runs_ask(&runs, &answers, NOW_MS, &look_ms), "1");
    for (size_t i = 0; i <= OPEN_RUNS_MAX; i++)
        result_record_clear(&jobs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_asked_10_min_after_the_last_news_of_any_of_its_jobs),
        cmocka_unit_test(it_is_asked_again_every_10_min),
        cmocka_unit_test(the_soonest_of_several_runs_is_when_to_look),
        cmocka_unit_test(what_github_refuses_is_not_asked_again_until_there_is_news),
        cmocka_unit_test(only_open_jobs_of_actions_with_a_proven_dispatch_are_asked_for),
        cmocka_unit_test(a_run_that_completed_ends_its_open_jobs_with_its_conclusion),
        cmocka_unit_test(a_run_that_goes_on_ends_nothing),
        cmocka_unit_test(no_job_ends_within_10_min_of_the_last_news),
        cmocka_unit_test(an_attempt_that_was_repeated_has_ended),
        cmocka_unit_test(an_answer_about_an_earlier_attempt_says_nothing_of_a_later_one),
        cmocka_unit_test(runs_beyond_the_limit_are_left_to_the_time_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/known_failure.h"

#define HOUR    (3600 * 1000LL)
#define PUSHED  (1000 * HOUR) /* of the oldest commit of main; one is pushed an hour */
#define COMMITS 4
#define THIS_PR 7

/* The jobs of a downstream: of main's commits 0 (oldest) to 3, and of pull requests. */
struct scene {
    struct main_commit commits[COMMITS]; /* newest first */
    struct main_list main;
    struct result_record jobs[64];
    size_t n;
};

static char shas[10][41];

static char *sha_of(int commit)
{
    memset(shas[commit], '0' + commit, 40);
    return shas[commit];
}

static int start(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    for (int i = 0; i < COMMITS; i++) {
        s->commits[i].pushed_ms = PUSHED + HOUR * (COMMITS - 1 - i);
        strcpy(s->commits[i].commit.sha, sha_of(COMMITS - 1 - i));
    }
    s->main = (struct main_list){ s->commits, COMMITS };
    *state = s;
    return 0;
}

static int stop(void **state)
{
    free(*state);
    return 0;
}

/* Text is borrowed, so no record is cleared. */
static struct result_record *add(struct scene *s, char *sha, int64_t pr, char *conclusion,
                                 int64_t ended_ms)
{
    struct result_record *job = &s->jobs[s->n++];
    result_record_init(job);
    job->repo = "org/four";
    job->event_type = pr ? "pull_request" : "push";
    job->head_sha = sha;
    job->pr_number = pr;
    job->workflow_name = "ci";
    job->job_name = "build";
    job->state = JOB_COMPLETED;
    job->conclusion = conclusion;
    job->completed_ms = ended_ms;
    return job;
}

static struct result_record *on_main(struct scene *s, int commit, char *conclusion)
{
    return add(s, sha_of(commit), 0, conclusion, PUSHED + HOUR * commit + HOUR / 2);
}

/* On this pull request, 10 h after the oldest commit of main was pushed. */
static struct result_record *here(struct scene *s)
{
    return add(s, sha_of(9), THIS_PR, "failure", PUSHED + 10 * HOUR);
}

/* What is said of job; NULL: nothing. The caller's. */
static struct known_failure *known_of(struct scene *s, const struct result_record *job)
{
    struct known_failures *all = known_failures_new(s->jobs, s->n, &s->main);
    struct known_failure *known = known_failure_applies(job) ? known_failure_new(all, job) : NULL;
    known_failures_free(all);
    return known;
}

static void assert_says(struct scene *s, const struct result_record *job, const char *reason,
                        const char *sentence)
{
    struct known_failure *known = known_of(s, job);
    struct buf text = BUF_INIT(KNOWN_SENTENCE_MAX);
    assert_non_null(known);
    known_failure_put(&text, known);
    assert_string_equal(known_reason_name(known->reason), reason);
    assert_string_equal(buf_str(&text).ptr, sentence);
    assert_false(buf_full(&text));
    buf_clear(&text);
    free(known);
}

static void what_fails_nowhere_else_is_only_here(void **state)
{
    struct scene *s = *state;
    on_main(s, 3, "success");
    assert_says(s, here(s), "only_here", "only here");
}

static void main_that_fails_is_named_with_its_first_red_commit_and_age(void **state)
{
    struct scene *s = *state;
    on_main(s, 1, "success");
    on_main(s, 2, "failure");
    on_main(s, 3, "timed_out");
    assert_says(s, here(s), "main", "fails on main too, since 2222222222, 8 h before this job");
    s->jobs[0].conclusion = "failure"; /* since when is not known: it was never green */
    assert_says(s, &s->jobs[3], "main",
                "fails on main too, since 1111111111 or earlier, 9 h before this job");
}

static void a_commit_of_main_may_come_after_the_job(void **state)
{
    struct scene *s = *state;
    on_main(s, 0, "success");
    on_main(s, 3, "failure");
    struct result_record *job = here(s);
    job->completed_ms = PUSHED + 3 * HOUR - 300 * 1000;
    assert_says(s, job, "main", "fails on main too, since 3333333333, 5 min after this job");
}

static void ages_have_one_unit(void **state)
{
    static const struct {
        int64_t s;
        const char *age;
    } ages[] = { { 0, "0 s" },         { 59, "59 s" },        { 60, "1 min" },
                 { 3599, "59 min" },   { 3600, "1 h" },       { 48 * 3600 - 1, "47 h" },
                 { 48 * 3600, "2 d" }, { 90 * 86400, "90 d" } };
    (void)state;
    for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        struct known_failure known = { .reason = KNOWN_MAIN,
                                       .since_sha = "abcdef012345",
                                       .since_ms = 1000,
                                       .failed_ms = 1000 + ages[i].s * 1000 };
        struct buf text = BUF_INIT(KNOWN_SENTENCE_MAX);
        char expected[100];
        snprintf(expected, sizeof(expected),
                 "fails on main too, since abcdef0123, %s before this job", ages[i].age);
        known_failure_put(&text, &known);
        assert_string_equal(text.ptr, expected);
        buf_clear(&text);
    }
}

/* Nobody proved the commit that such a run names. */
static void nightly_runs_are_not_main(void **state)
{
    struct scene *s = *state;
    on_main(s, 3, "failure")->event_type = "nightly";
    assert_says(s, here(s), "only_here", "only here");
}

static void main_that_is_green_again_does_not_fail(void **state)
{
    struct scene *s = *state;
    on_main(s, 2, "failure");
    on_main(s, 3, "success");
    assert_says(s, here(s), "only_here", "only here");
}

static void both_results_on_one_commit_are_flaky(void **state)
{
    struct scene *s = *state;
    on_main(s, 3, "success");
    add(s, sha_of(8), 8, "failure", PUSHED + 5 * HOUR)->replaced = true;
    add(s, sha_of(8), 8, "success", PUSHED + 6 * HOUR);
    assert_says(s, here(s), "flaky", "flaky: passed and failed on the same commit, 1 of 3 commits");
}

static void other_pull_requests_count_once_each_and_within_a_day(void **state)
{
    struct scene *s = *state;
    int64_t at_ms = PUSHED + 10 * HOUR;
    here(s);
    add(s, sha_of(8), 8, "failure", at_ms - 2 * HOUR);
    add(s, sha_of(6), 8, "failure", at_ms - HOUR);
    assert_says(s, &s->jobs[0], "other_pull_requests", "fails on 1 other pull request in 24 h");
    add(s, sha_of(5), 10, "failure", at_ms + 24 * HOUR);
    add(s, sha_of(4), 11, "timed_out", at_ms - 24 * HOUR);
    add(s, sha_of(4), 12, "failure", at_ms - 24 * HOUR - 1);
    add(s, sha_of(4), 13, "failure", at_ms + 24 * HOUR + 1);
    add(s, sha_of(4), 14, "cancelled", at_ms);
    add(s, sha_of(4), 15, "failure", at_ms)->replaced = true; /* its re-run may have passed */
    add(s, sha_of(4), 16, "failure", at_ms)->job_name = "test";
    add(s, sha_of(7), THIS_PR, "failure", at_ms - HOUR); /* an earlier commit of this one */
    assert_says(s, &s->jobs[0], "other_pull_requests", "fails on 3 other pull requests in 24 h");
}

static void of_several_reasons_main_counts_most_then_flaky_and_all_are_known(void **state)
{
    struct scene *s = *state;
    int64_t at_ms = PUSHED + 10 * HOUR;
    struct result_record *job = here(s);
    add(s, sha_of(8), 8, "failure", at_ms);
    assert_says(s, job, "other_pull_requests", "fails on 1 other pull request in 24 h");
    add(s, sha_of(6), 8, "failure", at_ms);
    add(s, sha_of(6), 8, "success", at_ms);
    assert_says(s, job, "flaky", "flaky: passed and failed on the same commit, 1 of 3 commits");
    on_main(s, 2, "success");
    on_main(s, 3, "failure");
    assert_says(s, job, "main", "fails on main too, since 3333333333, 7 h before this job");
    struct known_failure *known = known_of(s, job);
    assert_string_equal(known->since_sha, sha_of(3));
    assert_int_equal(known->since_ms, PUSHED + 3 * HOUR);
    assert_false(known->or_earlier);
    assert_int_equal(known->flaky, 1);
    assert_int_equal(known->commits, 5);
    assert_int_equal(known->others, 1);
    free(known);
}

/* The names decide: with a separator between them none joins to another. */
static void jobs_of_another_name_or_workflow_say_nothing(void **state)
{
    struct scene *s = *state;
    on_main(s, 3, "failure")->job_name = "buil";
    on_main(s, 3, "failure")->workflow_name = "c";
    struct result_record *joined = on_main(s, 3, "failure");
    joined->workflow_name = "cib";
    joined->job_name = "uild";
    assert_says(s, here(s), "only_here", "only here");
}

static void nothing_is_said_of_what_has_not_failed_or_is_of_no_pull_request(void **state)
{
    struct scene *s = *state;
    struct result_record *job = here(s);
    char *const fine[] = { "success", "cancelled", "skipped", "neutral", "action_required" };
    assert_true(known_failure_applies(job));
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        job->conclusion = fine[i];
        assert_false(known_failure_applies(job));
    }
    job->conclusion = NULL;
    job->state = JOB_TIMED_OUT;
    assert_true(known_failure_applies(job));
    job->pr_number = 0;
    assert_false(known_failure_applies(job));
    job->pr_number = THIS_PR;
    job->event_type = "nightly";
    assert_false(known_failure_applies(job));
}

/* That it fails only here cannot be said of a time that is not known any more. */
static void nothing_is_said_of_a_job_that_is_older_than_all_that_are_known(void **state)
{
    struct scene *s = *state;
    struct result_record old = *here(s);
    on_main(s, 3, "success");
    old.completed_ms = PUSHED + 3 * HOUR + HOUR / 2 - 1;
    assert_null(known_of(s, &old));
    old.completed_ms++;
    assert_says(s, &old, "only_here", "only here");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_fails_nowhere_else_is_only_here),
        TEST(main_that_fails_is_named_with_its_first_red_commit_and_age),
        TEST(a_commit_of_main_may_come_after_the_job),
        TEST(ages_have_one_unit),
        TEST(nightly_runs_are_not_main),
        TEST(main_that_is_green_again_does_not_fail),
        TEST(both_results_on_one_commit_are_flaky),
        TEST(other_pull_requests_count_once_each_and_within_a_day),
        TEST(of_several_reasons_main_counts_most_then_flaky_and_all_are_known),
        TEST(jobs_of_another_name_or_workflow_say_nothing),
        TEST(nothing_is_said_of_what_has_not_failed_or_is_of_no_pull_request),
        TEST(nothing_is_said_of_a_job_that_is_older_than_all_that_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/since.h"

#define COMMITS 6
#define PUSHED  1000000 /* of the oldest commit, in ms; one is pushed a second */

/* Commits 5 (newest) to 0, each the child of the one before; commit n is "n" 40 times. */
struct scene {
    struct main_commit commits[COMMITS];
    struct main_list main;
    struct result_record jobs[32];
    size_t n;
};

static char shas[10][41];

static char *sha_of(int commit)
{
    memset(shas[commit], '0' + commit, 40);
    return shas[commit];
}

static void scene_init(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < COMMITS; i++) {
        struct main_commit *c = &s->commits[COMMITS - 1 - i];
        strcpy(c->commit.sha, sha_of(i));
        if (i > 0)
            strcpy(c->commit.parent, sha_of(i - 1));
        c->commit.pr = 100 + i;
        c->pushed_ms = PUSHED + 1000 * i;
    }
    s->main = (struct main_list){ s->commits, COMMITS };
}

/* A run of job "ci / name" on that commit; text is borrowed, so no record is cleared. */
static struct result_record *run(struct scene *s, int commit, char *name, char *conclusion)
{
    struct result_record *r = &s->jobs[s->n++];
    result_record_init(r);
    r->repo = "org/four";
    r->event_type = "push";
    r->head_sha = sha_of(commit);
    r->workflow_name = "ci";
    r->job_name = name;
    r->state = JOB_COMPLETED;
    r->conclusion = conclusion;
    r->completed_ms = PUSHED + 1000 * commit + 500;
    return r;
}

static struct since_row only_row(struct scene *s)
{
    struct since since;
    since_init(&since, s->jobs, s->n, &s->main);
    assert_int_equal(since.n_failing, 1);
    struct since_row row = since.failing[0];
    since_clear(&since);
    return row;
}

static void assert_none(struct scene *s)
{
    struct since since;
    since_init(&since, s->jobs, s->n, &s->main);
    assert_int_equal(since.n_failing, 0);
    since_clear(&since);
}

/* Commit 2 was not run on: it may have broken the job as well as 3. */
static void commits_that_were_not_run_on_are_among_the_suspects(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 0, "build", "success");
    run(&s, 1, "build", "success");
    run(&s, 3, "build", "failure");
    run(&s, 5, "build", "timed_out");
    struct since_row row = only_row(&s);
    assert_string_equal(row.last_green.sha, sha_of(1));
    assert_string_equal(row.first_red.sha, sha_of(3));
    assert_int_equal(row.failing, 2);
    assert_int_equal(row.n_between, 2);
    assert_int_equal(row.between[0].commit.pr, 103);
    assert_int_equal(row.between[1].commit.pr, 102);
    assert_false(row.flaky);
    assert_false(row.gap);
}

/* Beyond the last green one, too: whether it comes and goes. */
static void the_strip_has_the_newest_commits_that_it_ran_on(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 0, "build", "failure");
    run(&s, 1, "build", "failure");
    run(&s, 1, "build", "success");
    run(&s, 2, "build", "success");
    run(&s, 3, "test", "success");
    run(&s, 4, "build", "failure");
    struct since_row row = only_row(&s);
    assert_string_equal(row.first_red.sha, sha_of(4));
    assert_int_equal(row.n_strip, 4);
    const struct since_commit *strip = row.strip; /* newest first */
    assert_string_equal(strip[0].sha, sha_of(4));
    assert_string_equal(strip[1].sha, sha_of(2));
    assert_true(strip[0].red && !strip[0].green && strip[1].green && !strip[1].red);
    assert_true(strip[2].red && strip[2].green && strip[3].red);
}

static void a_push_that_is_missing_between_is_said(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    strcpy(s.commits[COMMITS - 1 - 3].commit.parent, "ffff"); /* of commit 3 */
    run(&s, 1, "build", "success");
    run(&s, 4, "build", "failure");
    assert_true(only_row(&s).gap);
    run(&s, 3, "build", "success"); /* the missing push is before the last green one now */
    assert_false(only_row(&s).gap);
}

static void a_job_that_was_never_green_has_no_last_green_commit(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 4, "build", "failure");
    run(&s, 2, "build", "failure");
    struct since_row row = only_row(&s);
    assert_null(row.last_green.sha);
    assert_null(row.between);
    assert_string_equal(row.first_red.sha, sha_of(2));
}

static void a_job_that_is_green_again_does_not_fail(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 5, "build", "success");
    run(&s, 4, "build", "failure");
    run(&s, 3, "build", "success");
    assert_none(&s);
}

static void cancelled_and_running_jobs_say_nothing(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 3, "build", "success");
    run(&s, 4, "build", "cancelled");
    run(&s, 5, "build", NULL)->state = JOB_IN_PROGRESS;
    assert_none(&s);
}

static void a_commit_with_both_results_is_flaky(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 4, "build", "success")->run_attempt = "2";
    run(&s, 4, "build", "failure")->run_attempt = "1";
    struct since_row row = only_row(&s);
    assert_true(row.flaky);
    assert_int_equal(row.n_between, 0);
    run(&s, 5, "build", "failure"); /* and again: since the flaky one */
    row = only_row(&s);
    assert_true(row.flaky);
    assert_string_equal(row.last_green.sha, sha_of(4));
    assert_string_equal(row.first_red.sha, sha_of(5));
    assert_int_equal(row.failing, 1);
}

/* An attempt that a later one replaced is no failure of the commit any more; it was flaky. */
static void a_job_whose_re_run_passed_does_not_fail(void **state)
{
    (void)state;
    struct scene s;
    struct since since;
    scene_init(&s);
    run(&s, 3, "build", "success");
    run(&s, 4, "build", "success");
    run(&s, 4, "build", "failure")->replaced = true;
    since_init(&since, s.jobs, s.n, &s.main);
    assert_int_equal(since.n_failing, 0);
    assert_int_equal(since.n_flaky, 1);
    since_clear(&since);
    run(&s, 5, "build", "failure"); /* since the flaky one */
    struct since_row row = only_row(&s);
    assert_string_equal(row.last_green.sha, sha_of(4));
    assert_true(row.flaky);
    s.jobs[1].replaced = true; /* and the other way round: since that one */
    s.jobs[2].replaced = false;
    row = only_row(&s);
    assert_string_equal(row.first_red.sha, sha_of(4));
    assert_string_equal(row.last_green.sha, sha_of(3));
    assert_false(row.flaky);
}

static void a_job_that_vanished_says_on_how_many_commits_it_did_not_run(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 1, "gone", "failure");
    for (int commit = 1; commit < 5; commit++)
        run(&s, commit, "build", "success");
    run(&s, 4, "test", "success");
    assert_int_equal(only_row(&s).not_run, 3);
}

/* A nightly of a commit that is not in the list stands where it was reported, and the order is not
 * known. */
static void an_unknown_commit_is_placed_by_its_time_and_nothing_is_between(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 5, "nightly", "failure")->event_type = "nightly";
    struct result_record *unknown = run(&s, 9, "nightly", "success");
    unknown->event_type = "nightly";
    unknown->head_sha = NULL; /* it names its commit as its delivery */
    unknown->delivery_id = sha_of(9);
    unknown->completed_ms = PUSHED + 2500;
    run(&s, 1, "nightly", "success")->event_type = "nightly";
    struct since_row row = only_row(&s);
    assert_string_equal(row.last_green.sha, sha_of(9));
    assert_null(row.last_green.main);
    assert_int_equal(row.last_green.at_ms, PUSHED + 2500);
    assert_null(row.between);
}

/* Its deliveries have names of their own; the commit that it claims is in the list. */
static void a_claimed_commit_has_its_place_in_the_order_of_main(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    const char *const results[] = { NULL, "success", NULL, NULL, "failure", "failure" };
    for (int commit = 0; commit < COMMITS; commit++) {
        if (!results[commit])
            continue;
        struct result_record *job = run(&s, commit, "nightly", (char *)results[commit]);
        job->event_type = "nightly";
        job->delivery_id = "build-7-job-1";
    }
    struct since_row row = only_row(&s);
    assert_string_equal(row.first_red.sha, sha_of(4));
    assert_string_equal(row.last_green.sha, sha_of(1));
    assert_int_equal(row.n_between, 3);
    assert_int_equal(row.failing, 2);
}

static void a_push_to_another_branch_is_not_of_main(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    run(&s, 9, "build", "failure");
    assert_none(&s);
    s.jobs[0].completed_ms = PUSHED - 500; /* of before the list: it may have been of main */
    assert_null(only_row(&s).first_red.main);
}

static void pull_requests_are_not_of_main_but_may_be_flaky(void **state)
{
    (void)state;
    struct scene s;
    struct since since;
    scene_init(&s);
    const int commits[] = { 7, 7, 8 };
    char *const results[] = { "failure", "success", "success" };
    for (int i = 0; i < 3; i++) {
        struct result_record *r = run(&s, commits[i], "build", results[i]);
        r->pr_number = 7;
        r->event_type = "pull_request";
    }
    run(&s, 8, "lint", "success");
    struct result_record *docs = run(&s, 8, "docs", "failure"); /* only failed */
    docs->pr_number = 7;
    assert_none(&s);
    since_init(&since, s.jobs, s.n, &s.main);
    const struct flaky_row *rows = since.flaky;
    assert_int_equal(since.n_flaky, 1);
    assert_int_equal(rows[0].flaky, 1);
    assert_int_equal(rows[0].commits, 2);
    assert_ptr_equal(rows[0].red, &s.jobs[0]);
    assert_ptr_equal(rows[0].green, &s.jobs[1]);
    since_clear(&since);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_that_were_not_run_on_are_among_the_suspects),
        cmocka_unit_test(the_strip_has_the_newest_commits_that_it_ran_on),
        cmocka_unit_test(a_push_that_is_missing_between_is_said),
        cmocka_unit_test(a_job_that_was_never_green_has_no_last_green_commit),
        cmocka_unit_test(a_job_that_is_green_again_does_not_fail),
        cmocka_unit_test(cancelled_and_running_jobs_say_nothing),
        cmocka_unit_test(a_commit_with_both_results_is_flaky),
        cmocka_unit_test(a_job_whose_re_run_passed_does_not_fail),
        cmocka_unit_test(a_job_that_vanished_says_on_how_many_commits_it_did_not_run),
        cmocka_unit_test(an_unknown_commit_is_placed_by_its_time_and_nothing_is_between),
        cmocka_unit_test(a_claimed_commit_has_its_place_in_the_order_of_main),
        cmocka_unit_test(a_push_to_another_branch_is_not_of_main),
        cmocka_unit_test(pull_requests_are_not_of_main_but_may_be_flaky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

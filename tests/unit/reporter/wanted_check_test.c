#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/model/known_failure.h"
#include "reporter/wanted_check.h"
#include "tests/unit/reporter/job_scene.h"

/* One job that may start; check is to be cleared. */
static void ask(struct result_record *job, struct wanted_check *check)
{
    wanted_check_of_job(job, true, false, check);
}

static void a_job_in_progress_is_in_progress_without_conclusion(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_IN_PROGRESS, "success");
    ask(&job, &check);
    assert_string_equal(check.status, "in_progress");
    assert_null(check.conclusion);
    assert_false(check.completed);
    assert_string_equal(check.completed_at, "");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void a_completed_job_keeps_its_conclusion(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "cancelled");
    ask(&job, &check);
    assert_string_equal(check.status, "completed");
    assert_string_equal(check.conclusion, "cancelled");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void stale_is_not_ours_to_say(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "stale");
    ask(&job, &check);
    assert_string_equal(check.conclusion, "neutral");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void a_timed_out_job_completes_as_timed_out(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_TIMED_OUT, NULL);
    ask(&job, &check);
    assert_string_equal(check.status, "completed");
    assert_string_equal(check.conclusion, "timed_out");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void name_and_external_id_are_as_documented(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    ask(&job, &check);
    assert_string_equal(check.name, "crcr/org/four/ci/build: linux/x64");
    assert_string_equal(check.external_id, "77:42");
    assert_string_equal(check.details_url, "https://github.com/org/four/actions/runs/77");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void a_run_that_is_not_of_actions_links_to_the_reported_url(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    text_set(&job.run_id, "0190a1b2-uuid");
    text_set(&job.run_url, "https://ci.example/1");
    ask(&job, &check);
    assert_string_equal(check.details_url, "https://ci.example/1");
    assert_string_equal(check.external_id, "0190a1b2-uuid:42");
    wanted_check_clear(&check);
    text_set(&job.run_id, "build:7/ x");
    ask(&job, &check);
    assert_string_equal(check.external_id, "build%3A7%2F%20x:42");
    assert_memory_equal(check.slot, "build%3A7%2F%20x:42/", 20);
    wanted_check_clear(&check);
    text_set(&job.run_url, "javascript:alert(1)");
    ask(&job, &check);
    assert_null(check.details_url);
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void another_ci_that_numbers_its_runs_links_there_and_names_no_run_of_actions(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    text_set(&job.run_url, "https://gitlab.example/-/pipelines/77");
    text_set(&job.issuer, "https://gitlab.example");
    ask(&job, &check);
    assert_string_equal(check.details_url, "https://gitlab.example/-/pipelines/77");
    assert_string_equal(check.external_id, "77:42");
    wanted_check_clear(&check);
    text_set(&job.run_url, NULL);
    ask(&job, &check);
    assert_null(check.details_url);
    wanted_check_clear(&check);
    text_set(&job.issuer, CALLBACK_ISSUER_ACTIONS);
    ask(&job, &check);
    assert_string_equal(check.details_url, "https://github.com/org/four/actions/runs/77");
    assert_string_equal(check.external_id, "77:42");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void another_attempt_is_another_check_run(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check first, second;
    job_fill(&job, JOB_COMPLETED, "failure");
    ask(&job, &first);
    text_set(&job.run_attempt, "2");
    ask(&job, &second);
    assert_string_equal(first.name, second.name);
    assert_string_not_equal(first.slot, second.slot);
    assert_string_not_equal(first.marker, second.marker);
    wanted_check_clear(&first);
    wanted_check_clear(&second);
    result_record_clear(&job);
}

static void jobs_whose_names_join_to_the_same_text_are_distinguished(void **state)
{
    (void)state;
    static const char *const names[2][2] = { { "CI", "a/b" }, { "CI/a", "b" } };
    struct result_record jobs[2];
    struct wanted_check checks[2];
    for (size_t i = 0; i < 2; i++) {
        job_fill(&jobs[i], JOB_COMPLETED, "success");
        text_set(&jobs[i].workflow_name, names[i][0]);
        text_set(&jobs[i].job_name, names[i][1]);
        ask(&jobs[i], &checks[i]);
    }
    assert_string_equal(checks[0].name, checks[1].name);
    assert_string_not_equal(checks[0].slot, checks[1].slot);
    assert_string_not_equal(checks[0].marker, checks[1].marker);
    for (size_t i = 0; i < 2; i++) {
        wanted_check_clear(&checks[i]);
        result_record_clear(&jobs[i]);
    }
}

static void the_digest_follows_what_is_sent(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check one, same, other;
    job_fill(&job, JOB_COMPLETED, "failure");
    ask(&job, &one);
    job.dispatched_ms = 5; /* not sent */
    ask(&job, &same);
    job.failed = 3;
    ask(&job, &other);
    assert_string_equal(one.digest, same.digest);
    assert_string_not_equal(one.digest, other.digest);
    wanted_check_clear(&one);
    wanted_check_clear(&same);
    wanted_check_clear(&other);
    result_record_clear(&job);
}

static void a_failure_says_whether_it_is_known(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check none, first, later, other;
    job_fill(&job, JOB_COMPLETED, "failure");
    ask(&job, &none);
    job.known = mem_alloc(1, sizeof(*job.known));
    *job.known = (struct known_failure){ .reason = KNOWN_FLAKY, .flaky = 1, .commits = 12 };
    ask(&job, &first);
    job.known->commits = 13;
    ask(&job, &later);
    job.known->reason = KNOWN_ONLY_HERE;
    ask(&job, &other);
    assert_null(strstr(none.summary, "This failure"));
    assert_non_null(strstr(first.summary, "\nThis failure: <!-- known:flaky -->flaky: passed and "
                                          "failed on the same commit, 1 of 12 commits<!-- -->.\n"));
    assert_non_null(strstr(other.summary, "\nThis failure: <!-- known:only_here -->only here<"));
    assert_string_not_equal(none.digest, first.digest);
    assert_string_equal(first.digest, later.digest); /* figures alone are not worth a call */
    assert_string_not_equal(first.digest, other.digest);
    struct wanted_check *const all[] = { &none, &first, &later, &other };
    for (size_t i = 0; i < 4; i++)
        wanted_check_clear(all[i]);
    result_record_clear(&job);
}

static void times_that_are_none_are_not_sent(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    text_set(&job.started_at, "yesterday");
    text_set(&job.completed_at, "2026-11-21T04:00:00+01:00");
    ask(&job, &check);
    assert_string_equal(check.started_at, "");
    assert_string_equal(check.completed_at, "2026-11-21T03:00:00.000Z");
    wanted_check_clear(&check);
    result_record_clear(&job);
}

static void a_check_run_at_github_is_known_by_its_external_id_and_marker(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    ask(&job, &check);
    struct str own = str_of(check.marker), id = STR_LIT("77:42");
    assert_true(wanted_check_is(&check, id, own));
    assert_true(wanted_check_is(&check, id, STR_LIT("without any marker")));
    assert_false(wanted_check_is(&check, id, STR_LIT("<!-- crcr:2/77-1 -->")));
    assert_false(wanted_check_is(&check, STR_LIT("77:43"), own));
    check.aggregate = true; /* goes on under the next delivery's external_id */
    assert_true(wanted_check_is(&check, STR_LIT("d:d-2:42"), own));
    assert_false(wanted_check_is(&check, STR_LIT("d:d-2:42"), STR_LIT("without any marker")));
    wanted_check_clear(&check);
    result_record_clear(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_in_progress_is_in_progress_without_conclusion),
        cmocka_unit_test(a_completed_job_keeps_its_conclusion),
        cmocka_unit_test(stale_is_not_ours_to_say),
        cmocka_unit_test(a_timed_out_job_completes_as_timed_out),
        cmocka_unit_test(name_and_external_id_are_as_documented),
        cmocka_unit_test(a_run_that_is_not_of_actions_links_to_the_reported_url),
        cmocka_unit_test(another_ci_that_numbers_its_runs_links_there_and_names_no_run_of_actions),
        cmocka_unit_test(another_attempt_is_another_check_run),
        cmocka_unit_test(jobs_whose_names_join_to_the_same_text_are_distinguished),
        cmocka_unit_test(the_digest_follows_what_is_sent),
        cmocka_unit_test(a_failure_says_whether_it_is_known),
        cmocka_unit_test(times_that_are_none_are_not_sent),
        cmocka_unit_test(a_check_run_at_github_is_known_by_its_external_id_and_marker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

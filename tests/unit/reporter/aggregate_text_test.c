#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reporter/check_text.h"
#include "reporter/wanted_check.h"
#include "tests/unit/reporter/aggregate_scene.h"

static void assert_title(struct scene *s, const char *expected)
{
    char *title = aggregate_title(sum(s), &s->view);
    assert_string_equal(title, expected);
    free(title);
}

/* The caller's. */
static char *summary_of(struct scene *s)
{
    return aggregate_summary(sum(s), &s->view, "<!-- m -->");
}

static void assert_says(struct scene *s, const char *part)
{
    char *summary = summary_of(s);
    if (!strstr(summary, part))
        fail_msg("\"%s\" is not in:\n%s", part, summary);
    free(summary);
}

static void a_job_without_a_conclusion_is_listed_with_that(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "failure", 2000);
    char *summary = summary_of(s);
    assert_null(strstr(summary, "without a conclusion"));
    free(summary);
    s->jobs[0].no_conclusion = 1;
    assert_says(s, "reported without a conclusion");
}

static void each_state_has_its_title(void **state)
{
    struct scene *s = *state;
    assert_title(s, "Queued: dispatched, no job has reported yet");
    strcpy(s->dispatch.outcome, "unknown");
    assert_title(s, "Queued: perhaps dispatched, GitHub's answer was not seen");
    strcpy(s->dispatch.outcome, "waiting");
    assert_title(s, "Queued: the dispatch waits");
    strcpy(s->dispatch.outcome, "failed");
    assert_title(s, "Failure: the dispatch did not get through");
    strcpy(s->dispatch.outcome, "superseded");
    assert_title(s, "Cancelled: a newer event of the pull request came first");
    strcpy(s->dispatch.outcome, "dispatched");
    now(s, SILENT);
    assert_title(s, "Timed out: no job reported within 6 h");
    now(s, 60000);
    struct result_record *one = job(s, "77", "a", "1", "success", 2000);
    assert_title(s, "In progress: 1 of 1 job ended; others may follow");
    of_actions(one);
    assert_title(s, "In progress: 1 of 1 job ended; the run has not");
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    assert_title(s, "Failure: the run did not end well, though its jobs did");
    of_actions(job(s, "78", "b", "1", "cancelled", 2000));
    assert_title(s, "In progress: 2 of 2 jobs ended, 1 not well; the run has not");
}

static void each_job_is_listed_with_state_link_and_counts(void **state)
{
    struct scene *s = *state;
    struct result_record *one = job(s, "77", "a", "2", "success", 2000);
    one->passed = 8;
    one->skipped = 1;
    one->run_url = mem_dup("https://ci.example/1");
    job(s, "77", "b", "1", NULL, 1000);
    assert_says(s, "- **success** <code>ci</code> / <code>a</code> · attempt <code>2</code> · 8 "
                   "passed, 1 skipped · [Log](<https://ci.example/1>)\n");
    assert_says(s, "- **in_progress** <code>ci</code> / <code>b</code>\n");
}

static void the_reason_of_a_failed_dispatch_is_reported(void **state)
{
    struct scene *s = *state;
    strcpy(s->dispatch.outcome, "failed");
    strcpy(s->dispatch.error, "404 Not Found: @all <b>");
    assert_says(s, "<code>404 Not Found&#58; &#64;all &#60;b&#62;</code>");
}

static void what_github_said_or_would_not_say_of_a_run_is_reported(void **state)
{
    struct scene *s = *state;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_COMPLETED, "failure", 1, 9000);
    assert_says(s, "GitHub says that run <code>77</code> came to <code>failure</code>.");
    struct run_answer no = { .run_id = "77", .said = RUN_SAID_NO, .asked_ms = SENT_MS + 9000 };
    strcpy(no.error, "403 Resource not accessible");
    run_answers_set(&s->answers, &no);
    assert_says(s, "GitHub does not say how run <code>77</code> ends (<code>403 Resource not "
                   "accessible</code>): it goes by the jobs alone, once nothing was in progress "
                   "for 15 min.");
}

static void jobs_beyond_those_that_have_a_check_run_are_counted(void **state)
{
    struct scene *s = *state;
    job(s, "77", "a", "1", "success", 2000);
    s->view.checks_max = 50;
    s->view.unchecked = 1;
    assert_says(s, "\n1 job has no check run of its own: at most 50 of a commit have one.\n");
    s->view.unchecked = 7;
    assert_says(s, "\n7 jobs have no check run of their own: at most 50 of a commit have one.\n");
}

static void names_from_outside_cannot_format_link_or_mention(void **state)
{
    struct scene *s = *state;
    struct result_record *one =
        job(s, "77", "@all </code><img src=x> [a](http://b) *c*", "1", "success", 2000);
    one->run_url = mem_dup("javascript:alert(1)");
    char *summary = summary_of(s);
    assert_null(strstr(summary, "@all"));
    assert_null(strstr(summary, "<img"));
    assert_null(strstr(summary, "](http://b"));
    assert_null(strstr(summary, "javascript"));
    free(summary);
}

static void the_summary_fits_and_counts_what_it_leaves_out(void **state)
{
    struct scene *s = *state;
    char name[400];
    memset(name, '<', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int i = 0; i < MAX; i++) {
        char run_id[16];
        snprintf(run_id, sizeof(run_id), "%d", 100 + i);
        struct result_record *one = job(s, run_id, name, "1", "success", 2000);
        free(one->workflow_name);
        one->workflow_name = mem_dup(name);
    }
    char *summary = summary_of(s);
    assert_true(strlen(summary) <= CHECK_SUMMARY_MAX);
    assert_ptr_equal(strstr(summary, "<!-- m -->"), summary);
    const char *left = strstr(summary, "- … and ");
    assert_non_null(left);
    int listed = 0, more = atoi(left + strlen("- … and "));
    for (const char *at = summary; (at = strstr(at, "- **success**")); at++)
        listed++;
    assert_true(listed > 0 && more > 0);
    assert_int_equal(listed + more, MAX);
    free(summary);
}

/* ---- the check run --------------------------------------------------------------------------- */

static void want(struct scene *s, struct wanted_check *check)
{
    wanted_check_of_aggregate(sum(s), &s->view, false, check);
}

static void name_external_id_and_marker_are_as_documented(void **state)
{
    struct scene *s = *state;
    struct wanted_check check;
    want(s, &check);
    assert_string_equal(check.name, "crcr/org/four");
    assert_string_equal(check.external_id, "d:d-1:42");
    assert_string_equal(check.status, "queued");
    assert_ptr_equal(strstr(check.summary, check.marker), check.summary);
    assert_true(check.aggregate && check.may_start && !check.completed);
    assert_null(check.details_url);
    wanted_check_clear(&check);
}

static void it_starts_only_where_a_check_run_may_and_a_dispatch_came(void **state)
{
    struct scene *s = *state;
    struct wanted_check check;
    s->view.required = false;
    want(s, &check);
    assert_false(check.may_start);
    wanted_check_clear(&check);
    s->view.required = true;
    strcpy(s->dispatch.outcome, "skipped");
    want(s, &check);
    assert_false(check.may_start);
    wanted_check_clear(&check);
}

static void one_of_a_downstream_that_left_l4_ends_as_neutral_whatever_its_jobs_say(void **state)
{
    struct scene *s = *state;
    struct wanted_check check, later;
    s->view.required = false;
    for (int jobs = 0; jobs < 2; jobs++) {
        want(s, &check);
        assert_true(check.completed);
        assert_string_equal(check.conclusion, "neutral");
        assert_string_equal(check.title, "Not required: the back end is not at L4");
        now(s, 90000000); /* past every time-out: the same */
        want(s, &later);
        assert_string_equal(check.digest, later.digest);
        wanted_check_clear(&check);
        wanted_check_clear(&later);
        of_actions(job(s, "77", "a", "1", "failure", 2000));
    }
}

static void the_text_changes_only_when_something_happened(void **state)
{
    struct scene *s = *state;
    struct wanted_check first, later, next;
    of_actions(job(s, "77", "a", "1", "success", 2000));
    said(s, RUN_SAID_GOING, "", 1, 7000);
    want(s, &first);
    said(s, RUN_SAID_GOING, "", 1, 17000);
    now(s, 17000);
    want(s, &later);
    assert_string_equal(first.digest, later.digest);
    strcpy(s->dispatch.delivery, "d-2"); /* it goes on under the next delivery's name */
    want(s, &next);
    assert_string_not_equal(first.digest, next.digest);
    wanted_check_clear(&first);
    wanted_check_clear(&later);
    wanted_check_clear(&next);
}

static void it_links_to_the_run_that_is_worst_off(void **state)
{
    struct scene *s = *state;
    struct wanted_check check;
    job(s, "77", "a", "1", "success", 2000);
    job(s, "78", "b", "1", "failure", 2000);
    want(s, &check);
    assert_string_equal(check.details_url, "https://github.com/org/four/actions/runs/78");
    assert_string_equal(check.started_at, "1970-01-01T00:16:40.000Z");
    assert_string_equal(check.completed_at, "1970-01-01T00:16:42.000Z");
    wanted_check_clear(&check);
}

static void with_pages_it_links_to_the_back_ends_box_there(void **state)
{
    struct scene *s = *state;
    struct wanted_check check;
    job(s, "77", "a", "1", "success", 2000);
    s->view.public_url = "https://hud.example";
    want(s, &check);
    assert_string_equal(check.details_url, "https://hud.example/pr/42#org/four");
    wanted_check_clear(&check);
    s->dispatch.pr = 0; /* a push */
    want(s, &check);
    assert_string_equal(check.details_url, "https://hud.example/delivery/d-1#org/four");
    wanted_check_clear(&check);
}

static void each_failure_says_whether_it_is_known(void **state)
{
    struct scene *s = *state;
    is_known(job(s, "77", "a", "1", "failure", 2000), KNOWN_MAIN);
    assert_says(s, "<code>a</code> · <!-- known:main -->fails on main too, since 9c1d1a2b3c, 3 h "
                   "before this job<!-- -->\n");
    assert_title(s, "Failure: 1 of 1 job not successful");
    s->jobs[0].run_complete = 1;
    s->view.forgive_known = true;
    assert_title(s, "Neutral: 1 of 1 job not successful, on main too");
    assert_says(s, "does not make this fail (<code>CRCR_KNOWN_FAILURES</code>)");
}

/* Each report of any job of the downstream may change them. */
static void other_figures_of_a_known_failure_are_no_change_and_another_reason_is(void **state)
{
    struct scene *s = *state;
    struct wanted_check first, later, other;
    struct known_failure *known = is_known(job(s, "77", "a", "1", "failure", 2000), KNOWN_OTHERS);
    job(s, "77", "b", "1", "success", 2000);
    known->others = 1;
    want(s, &first);
    known->others = 2;
    want(s, &later);
    assert_non_null(strstr(first.summary, "on 1 other pull request in"));
    assert_non_null(strstr(later.summary, "on 2 other pull requests in"));
    assert_string_equal(first.digest, later.digest);
    known->reason = KNOWN_ONLY_HERE;
    want(s, &other);
    assert_string_not_equal(first.digest, other.digest);
    wanted_check_clear(&other);
    known->reason = KNOWN_OTHERS;
    s->jobs[1].passed = 3; /* what comes behind the sentence counts */
    want(s, &other);
    assert_string_not_equal(first.digest, other.digest);
    wanted_check_clear(&first);
    wanted_check_clear(&later);
    wanted_check_clear(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_without_a_conclusion_is_listed_with_that),
        TEST(each_state_has_its_title),
        TEST(each_job_is_listed_with_state_link_and_counts),
        TEST(the_reason_of_a_failed_dispatch_is_reported),
        TEST(what_github_said_or_would_not_say_of_a_run_is_reported),
        TEST(jobs_beyond_those_that_have_a_check_run_are_counted),
        TEST(names_from_outside_cannot_format_link_or_mention),
        TEST(the_summary_fits_and_counts_what_it_leaves_out),
        TEST(name_external_id_and_marker_are_as_documented),
        TEST(it_starts_only_where_a_check_run_may_and_a_dispatch_came),
        TEST(one_of_a_downstream_that_left_l4_ends_as_neutral_whatever_its_jobs_say),
        TEST(the_text_changes_only_when_something_happened),
        TEST(it_links_to_the_run_that_is_worst_off),
        TEST(with_pages_it_links_to_the_back_ends_box_there),
        TEST(each_failure_says_whether_it_is_known),
        TEST(other_figures_of_a_known_failure_are_no_change_and_another_reason_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

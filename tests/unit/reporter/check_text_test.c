#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/model/limits.h"
#include "reporter/check_text.h"

static void job_fill(struct result_record *job)
{
    result_record_init(job);
    job->state = JOB_COMPLETED;
    job->repo = mem_dup("org/four");
    job->workflow_name = mem_dup("ci");
    job->job_name = mem_dup("build");
    job->run_attempt = mem_dup("1");
}

static void title_tells_conclusion_and_counts(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.passed = 8;
    job.failed = 1;
    job.skipped = 0;
    char *title = check_title(&job, "timed_out");
    assert_string_equal(title, "Timed out: 1 failed, 8 passed");
    free(title);
    job.state = JOB_IN_PROGRESS;
    job.passed = job.failed = -1;
    title = check_title(&job, NULL);
    assert_string_equal(title, "In progress");
    free(title);
    result_record_clear(&job);
}

static void a_job_without_a_conclusion_says_so(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.no_conclusion = 1;
    char *title = check_title(&job, "failure");
    assert_string_equal(title, "Failure: reported without a conclusion");
    free(title);
    job.failed = 1;
    job.passed = 8;
    title = check_title(&job, "failure");
    assert_string_equal(title, "Failure: reported without a conclusion, 1 failed, 8 passed");
    free(title);
    char *text = check_summary(&job, "");
    assert_non_null(strstr(text, "reported without a conclusion, which counts as failure"));
    free(text);
    job.no_conclusion = -1;
    text = check_summary(&job, "");
    assert_null(strstr(text, "without a conclusion"));
    free(text);
    result_record_clear(&job);
}

static void summary_begins_with_its_marker_and_shows_counts_and_links(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.total = 10;
    job.passed = 8;
    job.run_url = mem_dup("https://ci/log");
    job.artifact_url = mem_dup("https://ci/artifacts");
    char *text = check_summary(&job, "<!-- m -->");
    assert_ptr_equal(strstr(text, "<!-- m -->"), text);
    assert_non_null(strstr(text, "| 10 | 8 | – | – |"));
    assert_non_null(strstr(text, "[Log](<https://ci/log>) · [Artifacts](<https://ci/artifacts>)"));
    free(text);
    result_record_clear(&job);
}

/* Whatever a downstream writes, no mark of it reaches Markdown, HTML or the mention filter. */
static void names_from_outside_cannot_format_link_or_mention(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    free(job.job_name);
    job.job_name = mem_dup("@pytorch/all `x` <script> [a](http://b) <!-- **b**\n# h |");
    job.failed_tests = mem_dup("[{\"name\":\"@everyone\",\"classname\":\"</code><img src=x>\","
                               "\"message\":\"![i](u)\\n- li\",\"stacktrace\":\"~~~\\n@a #1\"}]");
    job.triage_verdict = mem_dup("{\"category\":\"infra\",\"confidence\":\"low\","
                                 "\"summary\":\"cc @someone\"}");
    char *text = check_summary(&job, "");
    assert_null(strchr(text, '@'));
    assert_null(strchr(text, '`'));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "**"));
    assert_null(strstr(text, "](http://b"));
    assert_null(strstr(text, "\n# "));
    assert_null(strstr(text, "~~~"));
    free(text);
    result_record_clear(&job);
}

static void the_verdict_is_shown_as_the_downstreams_own(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.triage_verdict = mem_dup("{\"category\":\"infra\",\"confidence\":\"low\","
                                 "\"summary\":\"disk full\"}");
    char *text = check_summary(&job, "");
    assert_non_null(strstr(text, "The downstream's own analysis: <code>infra</code>, confidence "
                                 "<code>low</code>. <code>disk full</code>"));
    free(text);
    result_record_clear(&job);
}

static void names_from_outside_cannot_turn_the_text_around(void **state)
{
    (void)state;
    static const char *const marks[] = { "\u202e", "\u2066", "\u2069", "\u200f", "\u061c" };
    struct result_record job;
    job_fill(&job);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "a%sb%s", marks[i], marks[i]);
        free(job.job_name);
        job.job_name = mem_dup(name);
        char *text = check_summary(&job, "");
        assert_null(strstr(text, marks[i]));
        assert_non_null(strstr(text, "<code>ab</code>"));
        free(text);
    }
    free(job.job_name);
    job.job_name = mem_dup("建置 ‐ ✓");
    char *text = check_summary(&job, "");
    assert_non_null(strstr(text, "<code>建置 ‐ ✓</code>"));
    free(text);
    result_record_clear(&job);
}

static void links_that_are_no_plain_url_are_left_out(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "javascript:x", "https://a b", "https://a>b", "ftp://a", "https://u@h/", "https://a\nb", ""
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        assert_false(url_is_plain(str_of(urls[i])));
    assert_true(url_is_plain(STR_LIT("https://ci.example/a?b=(c)")));
}

static char *many_failed_tests(int n, size_t message_bytes)
{
    struct buf text;
    char *message = mem_alloc(message_bytes + 1, 1);
    memset(message, '*', message_bytes);
    buf_init(&text, 10u << 20);
    for (int i = 0; i < n; i++)
        buf_printf(&text, "%s{\"name\":\"t%d\",\"message\":\"%s\",\"stacktrace\":\"%s\"}",
                   i ? "," : "[", i, message, message);
    buf_putc(&text, ']');
    free(message);
    return buf_take(&text, NULL);
}

static void summary_fits_and_counts_what_it_leaves_out(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.failed_tests = many_failed_tests(20, 1000);
    job.failed_tests_cut = 980;
    job.run_url = mem_dup("https://ci/log");
    char *text = check_summary(&job, "<!-- m -->");
    assert_true(strlen(text) <= CHECK_SUMMARY_MAX);
    assert_non_null(strstr(text, "[Log](<https://ci/log>)"));
    const char *more = strstr(text, "- … and ");
    assert_non_null(more);
    assert_true(atoi(more + strlen("- … and ")) > 980);
    free(text);
    result_record_clear(&job);
}

static void failed_tests_that_are_no_json_are_passed_over(void **state)
{
    (void)state;
    struct result_record job;
    job_fill(&job);
    job.failed_tests = mem_dup("{not json");
    job.triage_verdict = mem_dup("[1]");
    char *text = check_summary(&job, "");
    assert_null(strstr(text, "Failed tests"));
    free(text);
    result_record_clear(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(title_tells_conclusion_and_counts),
        cmocka_unit_test(a_job_without_a_conclusion_says_so),
        cmocka_unit_test(summary_begins_with_its_marker_and_shows_counts_and_links),
        cmocka_unit_test(names_from_outside_cannot_format_link_or_mention),
        cmocka_unit_test(the_verdict_is_shown_as_the_downstreams_own),
        cmocka_unit_test(names_from_outside_cannot_turn_the_text_around),
        cmocka_unit_test(links_that_are_no_plain_url_are_left_out),
        cmocka_unit_test(summary_fits_and_counts_what_it_leaves_out),
        cmocka_unit_test(failed_tests_that_are_no_json_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

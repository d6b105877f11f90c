#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "reporter/which_checks.h"
#include "tests/unit/reporter/job_scene.h"

/* ---- which check runs ------------------------------------------------------------------------ */

static void l4_may_always_start(void **state)
{
    (void)state;
    const struct commit_view view = { .level = 4 };
    assert_true(check_may_start(&view, 42));
}

static void l1_l2_and_unlisted_never_start(void **state)
{
    (void)state;
    static const int levels[] = { 0, 1, 2 };
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        const struct commit_pr labels = { 42, "ciflow/crcr/npu", false };
        const struct commit_view view = {
            .level = levels[i], .device = STR_LIT("npu"), .prs = &labels, .n_prs = 1
        };
        assert_false(check_may_start(&view, 42));
    }
}

static void l3_starts_with_its_own_label_only(void **state)
{
    (void)state;
    struct commit_pr labels = { 42, "", false };
    const struct commit_view view = {
        .level = 3, .device = STR_LIT("npu"), .prs = &labels, .n_prs = 1
    };
    assert_false(check_may_start(&view, 42));
    labels.labels = "ciflow/crcr/npu2\nciflow/npu";
    assert_false(check_may_start(&view, 42));
    labels.labels = "ciflow/crcr/xpu\nciflow/crcr/npu";
    assert_true(check_may_start(&view, 42));
}

static void the_case_of_a_label_does_not_matter(void **state)
{
    (void)state;
    struct commit_pr labels = { 42, "ciflow/crcr/npu", false };
    struct commit_view view = { .level = 3, .device = STR_LIT("NPU"), .prs = &labels, .n_prs = 1 };
    assert_true(check_may_start(&view, 42));
    labels.labels = "CIFlow/crcr/Npu";
    assert_true(check_may_start(&view, 42));
}

static void a_demoted_l3_starts_nothing_and_l4_is_never_demoted(void **state)
{
    (void)state;
    const struct commit_pr labels = { 42, "ciflow/crcr/npu", false };
    struct commit_view view = {
        .level = 3, .device = STR_LIT("npu"), .demoted = true, .prs = &labels, .n_prs = 1
    };
    assert_false(check_may_start(&view, 42));
    view.level = 4;
    assert_true(check_may_start(&view, 42));
}

static void a_label_of_another_pull_request_with_the_same_head_opens_nothing(void **state)
{
    (void)state;
    const struct commit_pr labels[] = { { 41, "ciflow/crcr/npu", false }, { 42, "", false } };
    const struct commit_view view = {
        .level = 3, .device = STR_LIT("npu"), .prs = labels, .n_prs = 2
    };
    assert_true(check_may_start(&view, 41));
    assert_false(check_may_start(&view, 42));
    assert_false(check_may_start(&view, 43));
}

static void on_a_commit_that_is_past_nothing_starts(void **state)
{
    (void)state;
    const struct commit_pr prs[] = { { 41, "ciflow/crcr/a", true },
                                     { 42, "ciflow/crcr/a", false } };
    struct commit_view view = { .level = 3, .device = STR_LIT("a"), .prs = prs, .n_prs = 2 };
    assert_true(!check_may_start(&view, 41) && check_may_start(&view, 42));
    view.level = 4;
    assert_true(!check_may_start(&view, 41) && check_may_start(&view, 42));
}

static void a_job_without_a_pull_request_has_no_check_run(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    job.pr_number = 0;
    text_set(&job.event_type, "push");
    const struct commit_view view = { .level = 4, .jobs = &job, .n_jobs = 1 };
    assert_int_equal(which_checks_list(&view, &check), 0);
    result_record_clear(&job);
}

static void nightly_and_periodic_jobs_have_no_check_run(void **state)
{
    (void)state;
    static const char *const types[] = { "nightly", "periodic" };
    for (size_t i = 0; i < 2; i++) {
        struct result_record job;
        struct wanted_check check;
        job_fill(&job, JOB_COMPLETED, "success");
        text_set(&job.event_type, types[i]);
        const struct commit_view view = { .level = 4, .jobs = &job, .n_jobs = 1 };
        assert_int_equal(which_checks_list(&view, &check), 0);
        result_record_clear(&job);
    }
}

static void a_job_has_one_check_run_an_attempt(void **state)
{
    (void)state;
    struct result_record jobs[2];
    struct wanted_check checks[2];
    job_fill(&jobs[0], JOB_COMPLETED, "failure");
    job_fill(&jobs[1], JOB_IN_PROGRESS, NULL);
    text_set(&jobs[1].run_attempt, "2");
    const struct commit_view view = { .level = 4, .jobs = jobs, .n_jobs = 2 };
    assert_int_equal(which_checks_list(&view, checks), 2);
    assert_string_not_equal(checks[0].slot, checks[1].slot);
    for (size_t i = 0; i < 2; i++) {
        assert_true(checks[i].may_start);
        wanted_check_clear(&checks[i]);
        result_record_clear(&jobs[i]);
    }
}

static void a_job_that_lacks_a_name_has_none(void **state)
{
    (void)state;
    struct result_record job;
    struct wanted_check check;
    job_fill(&job, JOB_COMPLETED, "success");
    text_set(&job.run_attempt, NULL);
    const struct commit_view view = { .level = 4, .jobs = &job, .n_jobs = 1 };
    assert_int_equal(which_checks_list(&view, &check), 0);
    result_record_clear(&job);
}

/* ---- the limit ------------------------------------------------------------------------------- */

#define PAIRS 6

/* Check runs of the jobs a, b, c … of workflow ci, each first heard of a second before the one
 * ahead of it; all may start, none is at GitHub. */
struct crowd {
    struct result_record jobs[PAIRS];
    struct wanted_check wanted[PAIRS];
    struct check_sent sent[PAIRS];
};

static int crowd_make(void **state)
{
    struct crowd *c = calloc(1, sizeof(*c));
    for (size_t i = 0; i < PAIRS; i++) {
        char name[2] = { (char)('a' + (int)i), '\0' };
        job_fill(&c->jobs[i], JOB_IN_PROGRESS, NULL);
        text_set(&c->jobs[i].job_name, name);
        c->jobs[i].in_progress_ms = 100000 - (int64_t)i * 1000;
        c->wanted[i] = (struct wanted_check){ .job = &c->jobs[i], .may_start = true };
    }
    *state = c;
    return 0;
}

static int crowd_free(void **state)
{
    struct crowd *c = *state;
    for (size_t i = 0; i < PAIRS; i++)
        result_record_clear(&c->jobs[i]);
    free(c);
    return 0;
}

/* expected: the jobs that may start, "ab" those of the first two. */
static void assert_limited(struct crowd *c, size_t max, size_t beyond, const char *expected)
{
    char got[PAIRS + 1] = "";
    size_t n = 0;
    assert_int_equal(which_checks_limit(c->wanted, c->sent, PAIRS, max), beyond);
    for (size_t i = 0; i < PAIRS; i++)
        if (c->wanted[i].may_start)
            got[n++] = (char)('a' + (int)i);
    assert_string_equal(got, expected);
}

static void as_many_as_the_limit_all_have_one(void **state)
{
    assert_limited(*state, PAIRS, 0, "abcdef");
}

static void those_heard_of_first_have_one(void **state)
{
    assert_limited(*state, 2, 4, "ef");
}

static void heard_of_at_the_same_moment_the_name_decides(void **state)
{
    struct crowd *c = *state;
    for (size_t i = 0; i < PAIRS; i++)
        c->jobs[i].in_progress_ms = 100000;
    assert_limited(c, 2, 4, "ab");
}

static void those_at_github_already_count_and_stay(void **state)
{
    struct crowd *c = *state;
    c->sent[0].id = 11;
    c->sent[1].id = 12;
    assert_limited(c, 3, 3, "abf");
}

static void a_lower_limit_takes_nothing_from_jobs_at_github(void **state)
{
    struct crowd *c = *state;
    for (size_t i = 0; i < 3; i++)
        c->sent[i].id = 11 + (int64_t)i;
    assert_limited(c, 2, 3, "abc");
}

static void all_attempts_of_a_job_count_as_one(void **state)
{
    struct crowd *c = *state;
    text_set(&c->jobs[0].job_name, "f"); /* a later attempt of the last one */
    text_set(&c->jobs[0].run_attempt, "2");
    assert_limited(c, 2, 3, "aef");
}

static void jobs_that_may_not_start_take_no_room(void **state)
{
    struct crowd *c = *state;
    c->wanted[5].may_start = false; /* of a pull request without the label */
    c->wanted[4].may_start = false;
    assert_limited(c, 2, 2, "cd");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, crowd_make, crowd_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(l4_may_always_start),
        cmocka_unit_test(l1_l2_and_unlisted_never_start),
        cmocka_unit_test(l3_starts_with_its_own_label_only),
        cmocka_unit_test(the_case_of_a_label_does_not_matter),
        cmocka_unit_test(a_demoted_l3_starts_nothing_and_l4_is_never_demoted),
        cmocka_unit_test(a_label_of_another_pull_request_with_the_same_head_opens_nothing),
        cmocka_unit_test(on_a_commit_that_is_past_nothing_starts),
        cmocka_unit_test(a_job_without_a_pull_request_has_no_check_run),
        cmocka_unit_test(nightly_and_periodic_jobs_have_no_check_run),
        cmocka_unit_test(a_job_has_one_check_run_an_attempt),
        cmocka_unit_test(a_job_that_lacks_a_name_has_none),
        TEST(as_many_as_the_limit_all_have_one),
        TEST(those_heard_of_first_have_one),
        TEST(heard_of_at_the_same_moment_the_name_decides),
        TEST(those_at_github_already_count_and_stay),
        TEST(a_lower_limit_takes_nothing_from_jobs_at_github),
        TEST(all_attempts_of_a_job_count_as_one),
        TEST(jobs_that_may_not_start_take_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

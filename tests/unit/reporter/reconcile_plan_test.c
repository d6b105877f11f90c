#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "reporter/reconcile_plan.h"
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

static void on_a_commit_that_is_past_nothing_starts_and_the_rest_goes_last(void **state)
{
    (void)state;
    const struct commit_pr prs[] = { { 41, "ciflow/crcr/a", true },
                                     { 42, "ciflow/crcr/a", false } };
    struct commit_view view = { .level = 3, .device = STR_LIT("a"), .prs = prs, .n_prs = 2 };
    assert_true(!check_may_start(&view, 41) && check_may_start(&view, 42));
    view.level = 4;
    assert_true(!check_may_start(&view, 41) && check_may_start(&view, 42));
    const struct wanted_check end = { .aggregate = true, .completed = true, .past = true };
    assert_int_equal(plan_class(&end, &(struct check_sent){ .id = 7 }, ACTION_CHECK_UPDATE),
                     BUDGET_REST);
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
    assert_int_equal(plan_job_checks(&view, &check), 0);
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
        assert_int_equal(plan_job_checks(&view, &check), 0);
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
    assert_int_equal(plan_job_checks(&view, checks), 2);
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
    assert_int_equal(plan_job_checks(&view, &check), 0);
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
    assert_int_equal(plan_limit(c->wanted, c->sent, PAIRS, max), beyond);
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

/* ---- what is done about one check run -------------------------------------------------------- */

static void each_row_of_the_table_of_check_runs(void **state)
{
    (void)state;
    enum { NO = ACTION_NONE };
    enum { FIND = ACTION_CHECK_FIND, MAKE = ACTION_CHECK_CREATE, EDIT = ACTION_CHECK_UPDATE };
    static const struct {
        const char *what;
        int64_t id;
        bool completed, looked, same;
        int expected[6]; /* kept only: open, completed; may start: open, completed; the same of an
                            aggregate */
    } rows[] = {
        { "says so", 7, false, false, true, { NO, NO, NO, NO, NO, NO } },
        { "completed, says so", 7, true, false, true, { NO, NO, NO, NO, NO, NO } },
        { "refused just that", 0, false, false, true, { NO, NO, NO, NO, NO, NO } },
        { "not known", 0, false, false, false, { NO, NO, FIND, FIND, FIND, FIND } },
        { "none", 0, false, true, false, { NO, NO, MAKE, MAKE, MAKE, MAKE } },
        { "open", 7, false, false, false, { EDIT, EDIT, EDIT, EDIT, EDIT, EDIT } },
        { "found open", 7, false, true, false, { EDIT, EDIT, EDIT, EDIT, EDIT, EDIT } },
        { "completed", 7, true, false, false, { NO, EDIT, NO, EDIT, FIND, EDIT } },
        { "found completed", 7, true, true, false, { NO, EDIT, NO, EDIT, MAKE, EDIT } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int column = 0; column < 6; column++) {
            struct wanted_check wanted = { .aggregate = column >= 4,
                                           .may_start = column >= 2,
                                           .completed = column % 2 == 1,
                                           .digest = "wanted" };
            struct check_has has = { .sent = { .id = rows[i].id, .completed = rows[i].completed },
                                     .looked = rows[i].looked };
            strcpy(has.sent.digest, rows[i].same ? "wanted" : rows[i].id ? "older" : "");
            if ((int)plan_check(&wanted, &has) != rows[i].expected[column])
                fail_msg("%s, column %d", rows[i].what, column);
        }
}

static void an_aggregate_that_may_not_start_is_only_kept_up_to_date(void **state)
{
    (void)state;
    const struct wanted_check wanted = { .aggregate = true, .digest = "wanted" };
    struct check_has has = { .looked = true };
    assert_int_equal(plan_check(&wanted, &has), ACTION_NONE);
    has.sent = (struct check_sent){ .id = 7, .completed = true };
    assert_int_equal(plan_check(&wanted, &has), ACTION_NONE);
    has.sent.completed = false;
    assert_int_equal(plan_check(&wanted, &has), ACTION_CHECK_UPDATE);
}

static void what_completes_and_the_first_sign_of_an_aggregate_are_urgent(void **state)
{
    (void)state;
    const struct wanted_check job = { .job = NULL }, ended = { .completed = true };
    const struct wanted_check aggregate = { .aggregate = true };
    const struct wanted_check over = { .aggregate = true, .completed = true };
    const struct check_sent none = { .id = 0 }, open = { .id = 7 };
    const struct check_sent completed = { .id = 7, .completed = true };
    assert_int_equal(plan_class(&job, &none, ACTION_CHECK_CREATE), BUDGET_REST);
    assert_int_equal(plan_class(&ended, &open, ACTION_CHECK_UPDATE), BUDGET_URGENT);
    assert_int_equal(plan_class(&aggregate, &none, ACTION_CHECK_FIND), BUDGET_AGGREGATE);
    assert_int_equal(plan_class(&aggregate, &none, ACTION_CHECK_CREATE), BUDGET_AGGREGATE);
    assert_int_equal(plan_class(&over, &open, ACTION_CHECK_UPDATE), BUDGET_AGGREGATE);
    assert_int_equal(plan_class(&over, &completed, ACTION_CHECK_UPDATE), BUDGET_URGENT);
    assert_int_equal(plan_class(&job, &none, ACTION_CHECK_FIND), BUDGET_REST);
    assert_int_equal(plan_class(&aggregate, &open, ACTION_CHECK_UPDATE), BUDGET_REST);
}

/* ---- what is done about a comment ------------------------------------------------------------ */

static void each_row_of_the_table_of_comments(void **state)
{
    (void)state;
    static const struct {
        enum oncall_word word;
        struct comment_sent has;
        enum action_kind expected;
    } rows[] = {
        { ONCALL_NOTHING, { .known = false }, ACTION_NONE },
        { ONCALL_NOTHING, { .known = true, .id = 7, .digest = "older" }, ACTION_NONE },
        { ONCALL_FAILING, { .known = false }, ACTION_COMMENT_FIND },
        { ONCALL_FAILING, { .known = true }, ACTION_COMMENT_CREATE },
        { ONCALL_FAILING, { .known = true, .digest = "wanted" }, ACTION_COMMENT_CREATE },
        { ONCALL_FAILING, { .known = true, .id = 7, .digest = "wanted" }, ACTION_NONE },
        { ONCALL_FAILING, { .known = true, .id = 7, .digest = "older" }, ACTION_COMMENT_EDIT },
        { ONCALL_RESOLVED, { .known = false }, ACTION_COMMENT_FIND },
        { ONCALL_RESOLVED, { .known = true }, ACTION_NONE },
        { ONCALL_RESOLVED, { .known = true, .id = 7, .digest = "wanted" }, ACTION_NONE },
        { ONCALL_RESOLVED, { .known = true, .id = 7, .digest = "older" }, ACTION_COMMENT_EDIT },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (plan_comment(rows[i].word, "wanted", &rows[i].has) != rows[i].expected)
            fail_msg("row %zu", i);
}

/* ---- the list -------------------------------------------------------------------------------- */

#define LIST 4

/* Two jobs in progress, one that completed, and the aggregate; all may start. */
struct list {
    struct result_record jobs[LIST];
    struct wanted_check wanted[LIST];
    struct check_sent sent[LIST];
    struct plan_view view;
    char got[256];
};

static int list_make(void **state)
{
    struct list *l = calloc(1, sizeof(*l));
    for (size_t i = 0; i < LIST; i++) {
        job_fill(&l->jobs[i], JOB_IN_PROGRESS, NULL);
        l->wanted[i] = (struct wanted_check){
            .job = &l->jobs[i], .may_start = true, .completed = i == 1, .digest = "wanted"
        };
    }
    l->wanted[LIST - 1].job = NULL;
    l->wanted[LIST - 1].aggregate = true;
    l->view = (struct plan_view){ .wanted = l->wanted, .sent = l->sent, .n = LIST };
    *state = l;
    return 0;
}

static int list_free(void **state)
{
    struct list *l = *state;
    for (size_t i = 0; i < LIST; i++)
        result_record_clear(&l->jobs[i]);
    free(l);
    return 0;
}

static void sent(struct list *l, size_t i, const char *digest)
{
    l->sent[i].id = 70 + (int64_t)i;
    strcpy(l->sent[i].digest, digest);
}

/* "look find:3 update:0 comment:#42" */
static void assert_actions(struct list *l, const char *expected)
{
    static const char *const names[ACTION_KINDS] = {
        [ACTION_LOOK_AGAIN] = "look",
        [ACTION_CHECK_FIND] = "find",
        [ACTION_CHECK_UPDATE] = "update",
        [ACTION_COMMENT] = "comment",
    };
    struct action *actions = mem_alloc(plan_most_actions(LIST), sizeof(*actions));
    size_t n = plan_actions(&l->view, actions), at = 0;
    assert_true(n <= plan_most_actions(LIST));
    l->got[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        assert_non_null(names[actions[i].kind]);
        at += (size_t)snprintf(l->got + at, sizeof(l->got) - at, "%s%s", i ? " " : "",
                               names[actions[i].kind]);
        if (actions[i].kind == ACTION_COMMENT)
            at += (size_t)snprintf(l->got + at, sizeof(l->got) - at, ":#%d", (int)actions[i].pr);
        else if (actions[i].kind != ACTION_LOOK_AGAIN)
            at += (size_t)snprintf(l->got + at, sizeof(l->got) - at, ":%zu", actions[i].check);
    }
    free(actions);
    assert_string_equal(l->got, expected);
}

static void the_first_sign_of_an_aggregate_comes_first_then_what_completed(void **state)
{
    assert_actions(*state, "look find:3 find:1 find:0 find:2");
}

static void an_aggregate_that_is_there_comes_after_the_jobs(void **state)
{
    struct list *l = *state;
    sent(l, 3, "older");
    sent(l, 2, "older");
    assert_actions(l, "look find:1 find:0 update:2 update:3");
}

static void what_github_says_already_is_not_in_the_list(void **state)
{
    struct list *l = *state;
    for (size_t i = 0; i < LIST; i++)
        sent(l, i, "wanted");
    assert_actions(l, "look");
    l->view.n = LIST - 1; /* no aggregate: nothing to look at again */
    assert_actions(l, "");
}

static void what_may_not_start_and_is_not_there_is_not_in_the_list(void **state)
{
    struct list *l = *state;
    for (size_t i = 0; i < LIST; i++)
        l->wanted[i].may_start = false;
    sent(l, 1, "older");
    assert_actions(l, "look update:1");
}

static void comments_come_last_one_a_pull_request_with_check_runs(void **state)
{
    struct list *l = *state;
    for (size_t i = 0; i < LIST; i++)
        sent(l, i, "wanted");
    l->jobs[2].pr_number = 41; /* the same head commit */
    assert_actions(l, "look");
    l->view.comments = true;
    assert_actions(l, "look comment:#42 comment:#41");
    l->wanted[2].may_start = false;
    assert_actions(l, "look comment:#42 comment:#41");
    l->sent[2] = (struct check_sent){ .id = 0 }; /* it never had a check run */
    assert_actions(l, "look comment:#42");
}

#define TEST(name, kind) cmocka_unit_test_setup_teardown(name, kind##_make, kind##_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(l4_may_always_start),
        cmocka_unit_test(l1_l2_and_unlisted_never_start),
        cmocka_unit_test(l3_starts_with_its_own_label_only),
        cmocka_unit_test(the_case_of_a_label_does_not_matter),
        cmocka_unit_test(a_demoted_l3_starts_nothing_and_l4_is_never_demoted),
        cmocka_unit_test(a_label_of_another_pull_request_with_the_same_head_opens_nothing),
        cmocka_unit_test(on_a_commit_that_is_past_nothing_starts_and_the_rest_goes_last),
        cmocka_unit_test(a_job_without_a_pull_request_has_no_check_run),
        cmocka_unit_test(nightly_and_periodic_jobs_have_no_check_run),
        cmocka_unit_test(a_job_has_one_check_run_an_attempt),
        cmocka_unit_test(a_job_that_lacks_a_name_has_none),
        TEST(as_many_as_the_limit_all_have_one, crowd),
        TEST(those_heard_of_first_have_one, crowd),
        TEST(heard_of_at_the_same_moment_the_name_decides, crowd),
        TEST(those_at_github_already_count_and_stay, crowd),
        TEST(a_lower_limit_takes_nothing_from_jobs_at_github, crowd),
        TEST(all_attempts_of_a_job_count_as_one, crowd),
        TEST(jobs_that_may_not_start_take_no_room, crowd),
        cmocka_unit_test(each_row_of_the_table_of_check_runs),
        cmocka_unit_test(an_aggregate_that_may_not_start_is_only_kept_up_to_date),
        cmocka_unit_test(what_completes_and_the_first_sign_of_an_aggregate_are_urgent),
        cmocka_unit_test(each_row_of_the_table_of_comments),
        TEST(the_first_sign_of_an_aggregate_comes_first_then_what_completed, list),
        TEST(an_aggregate_that_is_there_comes_after_the_jobs, list),
        TEST(what_github_says_already_is_not_in_the_list, list),
        TEST(what_may_not_start_and_is_not_there_is_not_in_the_list, list),
        TEST(comments_come_last_one_a_pull_request_with_check_runs, list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static void what_is_on_a_commit_that_is_past_goes_last(void **state)
{
    const struct wanted_check end = { .aggregate = true, .completed = true, .past = true };
    (void)state;
    assert_int_equal(plan_class(&end, &(struct check_sent){ .id = 7 }, ACTION_CHECK_UPDATE),
                     BUDGET_REST);
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
        cmocka_unit_test(each_row_of_the_table_of_check_runs),
        cmocka_unit_test(an_aggregate_that_may_not_start_is_only_kept_up_to_date),
        cmocka_unit_test(what_completes_and_the_first_sign_of_an_aggregate_are_urgent),
        cmocka_unit_test(what_is_on_a_commit_that_is_past_goes_last),
        cmocka_unit_test(each_row_of_the_table_of_comments),
        TEST(the_first_sign_of_an_aggregate_comes_first_then_what_completed, list),
        TEST(an_aggregate_that_is_there_comes_after_the_jobs, list),
        TEST(what_github_says_already_is_not_in_the_list, list),
        TEST(what_may_not_start_and_is_not_there_is_not_in_the_list, list),
        TEST(comments_come_last_one_a_pull_request_with_check_runs, list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

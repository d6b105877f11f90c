#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/known_failure.h"
#include "reporter/web/api.h"

static json_t *parsed(struct buf *text)
{
    json_t *root = json_loadb(text->ptr, text->len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    buf_clear(text);
    return root;
}

static struct result_record job(char *repo, char *conclusion)
{
    struct result_record r;
    result_record_init(&r);
    r.key = "k";
    r.repo = repo;
    r.level = 3;
    r.state = JOB_COMPLETED;
    r.conclusion = conclusion;
    return r;
}

static void a_repo_without_jobs_has_no_pass_rate(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 1 << 20);
    const struct window none = { .days = 7 };
    api_put_repo(&text, STR_LIT("org/gone"), NULL, NULL, NULL, 0, &none);
    json_t *root = parsed(&text), *window = json_object_get(root, "window");
    assert_true(
        json_is_null(json_object_get(json_object_get(window, "pull_requests"), "pass_rate")));
    assert_true(json_is_null(json_object_get(root, "level")));
    assert_true(json_is_null(json_object_get(root, "last_run")));
    assert_true(json_is_null(json_object_get(json_object_get(window, "nightly"), "pass_rate")));
    assert_true(json_is_null(json_object_get(root, "demoted")));
    json_decref(root);
}

static void a_repo_tells_tier_rate_and_last_result(void **state)
{
    (void)state;
    const struct str oncall = STR_LIT("al\"ice");
    const struct allowlist_entry entry = {
        .repo = STR_LIT("Org/Three"),
        .level = 3,
        .device = STR_LIT("npu"),
        .oncalls = &oncall,
        .n_oncalls = 1,
    };
    struct result_record jobs[] = { job("org/three", "success"), job("org/three", "failure") };
    struct buf text;
    jobs[0].run_id = jobs[1].run_id = "9";
    buf_init(&text, 1 << 20);
    const struct demotion demotion = { .repo = NULL,
                                       .reason = (char *)(uintptr_t) "slow",
                                       .since_ms = 1000 };
    struct hours_point day = {
        .of[RUN_PULL]
            .count = { [FIGURE_COMPLETED] = 8, [FIGURE_SUCCESSFUL] = 4, [FIGURE_CANCELLED] = 1 }
    };
    const struct window window = { .days = 7, .n = 1, .at = &day };
    api_put_repo(&text, STR_LIT("org/three"), &entry, &demotion, jobs, 2, &window);
    json_t *root = parsed(&text);
    assert_string_equal(json_string_value(json_object_get(root, "repo")), "Org/Three");
    assert_string_equal(json_string_value(json_object_get(root, "level")), "L3");
    const json_t *prs = json_object_get(json_object_get(root, "window"), "pull_requests");
    assert_true(json_real_value(json_object_get(prs, "pass_rate")) == 0.5);
    assert_int_equal(json_integer_value(json_object_get(prs, "failed")), 3);
    const json_t *spark = json_array_get(json_object_get(root, "spark"), 0);
    assert_int_equal(json_integer_value(json_object_get(spark, "completed")), 8);
    json_t *run = json_object_get(root, "last_run"), *worst = json_object_get(run, "worst");
    assert_int_equal(json_integer_value(json_object_get(run, "jobs")), 2);
    assert_int_equal(json_integer_value(json_object_get(run, "failed")), 1);
    assert_string_equal(json_string_value(json_object_get(worst, "conclusion")), "failure");
    assert_string_equal(json_string_value(json_array_get(json_object_get(root, "oncalls"), 0)),
                        "al\"ice");
    const json_t *demoted = json_object_get(root, "demoted");
    assert_string_equal(json_string_value(json_object_get(demoted, "reason")), "slow");
    assert_string_equal(json_string_value(json_object_get(demoted, "since")),
                        "1970-01-01T00:00:01.000Z");
    json_decref(root);
}

/* Of the newest 100 jobs the last is of another run, and the run may have begun before it. */
static void a_run_that_began_before_what_is_seen_may_have_more_jobs(void **state)
{
    (void)state;
    static struct result_record jobs[RUN_JOBS];
    const struct window none = { .days = 7 };
    for (size_t i = 0; i < RUN_JOBS; i++) {
        jobs[i] = job("org/three", "success");
        jobs[i].run_id = i < RUN_JOBS - 1 ? "9" : "8";
        jobs[i].dispatched_ms = 5000;
        jobs[i].last_ms = 10000 - (int64_t)i;
    }
    for (int more = 0; more <= 1; more++) {
        struct buf text;
        buf_init(&text, 1 << 20);
        jobs[RUN_JOBS - 1].last_ms = more ? 5000 : 4999;
        api_put_repo(&text, STR_LIT("org/three"), NULL, NULL, jobs, RUN_JOBS, &none);
        json_t *root = parsed(&text), *run = json_object_get(root, "last_run");
        assert_int_equal(json_integer_value(json_object_get(run, "jobs")), RUN_JOBS - 1);
        assert_int_equal(json_is_true(json_object_get(run, "more_jobs")), more);
        json_decref(root);
    }
}

static void a_silent_back_end_is_timed_out_in_the_list(void **state)
{
    (void)state;
    const struct dispatch_view dispatches[] = { { .repo = "org/four", .level = 4 },
                                                { .repo = "org/five", .level = 4 } };
    const bool silent[] = { true, false };
    const struct api_delivery shown = {
        .id = STR_LIT("d-1"), .dispatches = dispatches, .n_dispatches = 2, .silent = silent
    };
    const struct pr_text of = { .title = "" };
    struct buf text;
    buf_init(&text, 1 << 20);
    api_put_pr(&text, 7, 1000, &of, &shown);
    json_t *root = parsed(&text);
    const json_t *rows = json_object_get(root, "downstreams");
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "status")),
                        "timed_out");
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "status")));
    json_decref(root);
}

static void a_delivery_names_each_downstream_once(void **state)
{
    (void)state;
    const struct result_record jobs[] = { job("org/three", "failure"), job("org/three", "success"),
                                          job("org/four", "success"), job("org/four", "success") };
    const struct dispatch_view dispatch = { .repo = "Org/Three",
                                            .outcome = "dispatched",
                                            .level = 3,
                                            .pr = 42,
                                            .head_sha = "abc",
                                            .event_type = "pull_request",
                                            .at_ms = 1000 };
    struct allowlist *list;
    struct allowlist_version version = { .list = NULL };
    struct why why;
    assert_int_equal(
        allowlist_parse(&list, "list.yml", STR_LIT("L3:\n  npu: { org/three: [alice] }\n"), &why),
        OK);
    version.list = list;
    const struct api_delivery delivery = { .id = STR_LIT("d-1"),
                                           .jobs = jobs,
                                           .n_jobs = 4,
                                           .dispatches = &dispatch,
                                           .n_dispatches = 1,
                                           .version = &version };
    struct buf text;
    buf_init(&text, 1 << 20);
    api_put_delivery(&text, &delivery);
    json_t *root = parsed(&text);
    json_t *rows = json_object_get(root, "downstreams");
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_array_size(json_object_get(root, "jobs")), 4);
    assert_int_equal(json_integer_value(json_object_get(root, "pr_number")), 42);
    json_t *first = json_object_get(json_array_get(rows, 0), "dispatch");
    assert_string_equal(json_string_value(json_object_get(first, "at")),
                        "1970-01-01T00:00:01.000Z");
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "dispatch")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "device")),
                        "npu");
    assert_int_equal(json_array_size(json_object_get(json_array_get(rows, 0), "oncalls")), 1);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "device")));
    allowlist_free(list);
    json_decref(root);
}

static void a_failure_tells_whether_it_is_known(void **state)
{
    (void)state;
    struct known_failure known = { .reason = KNOWN_MAIN,
                                   .since_sha = "9c1d1a2b3c4d",
                                   .since_ms = 1000,
                                   .failed_ms = 3601000,
                                   .flaky = 1,
                                   .commits = 9,
                                   .others = 2 };
    struct result_record one = job("org/four", "failure");
    struct buf text;
    buf_init(&text, 1 << 20);
    api_put_job(&text, &one);
    json_t *root = parsed(&text), *none = json_object_get(root, "known");
    assert_true(json_is_null(none));
    json_decref(root);
    one.known = &known;
    api_put_job(&text, &one);
    root = parsed(&text);
    char *said = json_dumps(json_object_get(root, "known"), JSON_COMPACT);
    assert_string_equal(
        said,
        "{\"reason\":\"main\",\"sentence\":\"fails on main too, since 9c1d1a2b3c, 1 h before this "
        "job\",\"since_sha\":\"9c1d1a2b3c4d\",\"since_at\":\"1970-01-01T00:00:01.000Z\","
        "\"since_or_earlier\":false,\"flaky_commits\":1,\"commits\":9,"
        "\"other_pull_requests\":2}");
    free(said);
    json_decref(root);
}

static void a_delivery_tells_whether_its_commit_exists_and_null_while_nobody_knows(void **state)
{
    (void)state;
    static const int types[] = { [COMMIT_UNKNOWN] = JSON_NULL,
                                 [COMMIT_ASKED] = JSON_NULL,
                                 [COMMIT_ABSENT] = JSON_FALSE,
                                 [COMMIT_EXISTS] = JSON_TRUE };
    for (size_t i = 0; i < 4; i++) {
        const struct api_delivery delivery = { .id = STR_LIT("abc"),
                                               .commit = (enum commit_seen)i };
        struct buf text;
        buf_init(&text, 1 << 20);
        api_put_delivery(&text, &delivery);
        json_t *root = parsed(&text);
        assert_int_equal(json_typeof(json_object_get(root, "commit_exists")), types[i]);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repo_without_jobs_has_no_pass_rate),
        cmocka_unit_test(a_repo_tells_tier_rate_and_last_result),
        cmocka_unit_test(a_run_that_began_before_what_is_seen_may_have_more_jobs),
        cmocka_unit_test(a_silent_back_end_is_timed_out_in_the_list),
        cmocka_unit_test(a_delivery_names_each_downstream_once),
        cmocka_unit_test(a_failure_tells_whether_it_is_known),
        cmocka_unit_test(a_delivery_tells_whether_its_commit_exists_and_null_while_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/rerun_expand.h"

#define NOW     1000000000000LL
#define OUR_APP 4242
#define PR      17

static const char yaml[] = "L2: [org/two]\n"
                           "L3:\n"
                           "  device: { org/three: [alice] }\n"
                           "L4:\n"
                           "  - org/four: bob\n";

struct fixture {
    struct allowlist *list;
    struct event event;
    struct routes routes;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_int_equal(allowlist_parse(&f->list, "a.yml", str_of(yaml), NULL), OK);
    f->event = (struct event){ .kind = EVENT_CHECK_SUITE, .received_ms = NOW };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    routes_clear(&f->routes);
    allowlist_free(f->list);
    free(f);
    return 0;
}

/* ---- check suites ---- */

#define OURS(n, id)                                                                                \
    {                                                                                              \
        .app_id = OUR_APP, .name = STR_LIT(n), .external_id = STR_LIT(id)                          \
    }

static void expand(struct fixture *f, const struct check_asked *checks, size_t n)
{
    const struct route_input in = {
        .event = &f->event, .list = f->list, .now_ms = NOW, .max_age_ms = 1000, .app_id = OUR_APP
    };
    routes_clear(&f->routes);
    expand_suite(&in, checks, n, &f->routes);
    expand_drop_aggregates(&f->routes);
}

static void is_rerun(const struct route *route, const char *repo, int level, const char *run_id)
{
    assert_int_equal(route->kind, TASK_RERUN_ALL);
    assert_null(route->skipped);
    assert_true(str_is(route->repo, repo));
    assert_int_equal(route->level, level);
    assert_true(str_is(route->run_id, run_id));
}

static void jobs_of_one_run_become_one_rerun(void **state)
{
    const struct check_asked checks[] = {
        OURS("crcr/org/four/CI/a", "1:17"),  OURS("crcr/org/four/CI/b", "1:17"),
        OURS("crcr/ORG/Four/CI/c", "1:18"),  OURS("crcr/org/four/Docs/d", "2:17"),
        OURS("crcr/org/three/CI/a", "1:17"),
    };
    struct fixture *f = *state;
    expand(f, checks, 5);
    assert_int_equal(f->routes.n, 3);
    assert_null(f->routes.nothing);
    is_rerun(&f->routes.at[0], "org/four", 4, "1");
    is_rerun(&f->routes.at[1], "org/four", 4, "2");
    is_rerun(&f->routes.at[2], "org/three", 3, "1");
}

static void the_aggregate_of_a_repo_with_known_runs_adds_nothing(void **state)
{
    const struct check_asked checks[] = {
        OURS("crcr/org/four", "d:x:17"),
        OURS("crcr/org/four/CI/a", "1:17"),
    };
    struct fixture *f = *state;
    expand(f, checks, 2);
    assert_int_equal(f->routes.n, 1);
    is_rerun(&f->routes.at[0], "org/four", 4, "1");
}

static void the_aggregate_of_a_silent_repo_is_expanded(void **state)
{
    const struct check_asked checks[] = {
        OURS("crcr/org/four/CI/a", "1:17"),
        OURS("crcr/org/three", "d:x:17"),
    };
    struct fixture *f = *state;
    expand(f, checks, 2);
    assert_int_equal(f->routes.n, 2);
    assert_int_equal(f->routes.at[1].kind, TASK_EXPAND);
    assert_int_equal(f->routes.at[1].level, 3);
    assert_true(str_is(f->routes.at[1].run_id, "d:x:17"));
}

static void another_cis_job_is_skipped_and_its_aggregate_is_expanded(void **state)
{
    const struct check_asked checks[] = {
        OURS("crcr/org/four/CI/a", "0192-ab:17"),
        OURS("crcr/org/four/CI/b", "ci:51:17"),
        OURS("crcr/org/four", "d:x:17"),
    };
    struct fixture *f = *state;
    expand(f, checks, 3);
    assert_int_equal(f->routes.n, 2);
    assert_non_null(strstr(f->routes.at[0].skipped, "no GitHub Actions run"));
    assert_int_equal(f->routes.at[1].kind, TASK_EXPAND);
    assert_null(f->routes.at[1].skipped);
}

static void what_is_skipped_is_told_once_a_repo_and_reason(void **state)
{
    const struct check_asked checks[] = {
        OURS("crcr/org/two/CI/a", "1:17"),
        OURS("crcr/org/two/CI/b", "2:17"),
    };
    struct fixture *f = *state;
    expand(f, checks, 2);
    assert_int_equal(f->routes.n, 1);
    assert_non_null(strstr(f->routes.at[0].skipped, "levels 3 and 4"));
}

static void check_runs_of_others_are_passed_over_with_the_reason(void **state)
{
    const struct check_asked checks[] = {
        { .app_id = OUR_APP + 1,
          .name = STR_LIT("crcr/org/four/CI/a"),
          .external_id = STR_LIT("1:17") },
        OURS("lint", "1:17"),
        OURS("crcr/org/gone/CI/a", "1:17"),
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        expand(f, &checks[i], 1);
        assert_int_equal(f->routes.n, 0);
        assert_non_null(f->routes.nothing);
    }
    expand(f, checks, 0);
    assert_non_null(strstr(f->routes.nothing, "no check run"));
}

/* ---- aggregate checks ---- */

static struct result_record job(const char *workflow, const char *run_id, int64_t pr)
{
    return (struct result_record){ .workflow_name = (char *)workflow,
                                   .run_id = (char *)run_id,
                                   .pr_number = pr,
                                   .delivery_id = (char *)"dispatched",
                                   .event_type = (char *)"pull_request" };
}

static void aggregate(struct fixture *f, const struct result_record *jobs, size_t n)
{
    const struct expand_aggregate of = {
        .repo = STR_LIT("org/four"), .level = 4, .pr = PR, .delivery = STR_LIT("asked")
    };
    routes_clear(&f->routes);
    expand_aggregate(&of, jobs, n, &f->routes);
}

static void the_newest_run_of_each_workflow_is_run_again_whole(void **state)
{
    struct fixture *f = *state;
    const struct result_record jobs[] = { job("CI", "9", PR),  job("CI", "10", PR),
                                          job("CI", "10", PR), job("Docs", "4", PR),
                                          job("CI", "8", PR),  job("CI", "11", PR + 1) };
    aggregate(f, jobs, 6);
    assert_int_equal(f->routes.n, 2);
    assert_null(f->routes.nothing);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->routes.at[i].kind, TASK_RERUN_ALL);
        assert_int_equal(f->routes.at[i].level, 4);
        assert_true(str_is(f->routes.at[i].repo, "org/four"));
    }
    assert_true(str_is(f->routes.at[0].run_id, "10"));
    assert_true(str_is(f->routes.at[1].run_id, "4"));
}

static void without_a_known_run_there_is_nothing_to_run_again(void **state)
{
    struct fixture *f = *state;
    struct result_record jobs[] = { job("CI", "9", PR + 1), job("CI", "9", PR) };
    jobs[1].event_type = (char *)"nightly";
    aggregate(f, jobs, 2);
    assert_int_equal(f->routes.n, 0);
    assert_string_equal(f->routes.nothing, "no run is known");
}

static void a_run_of_another_ci_makes_it_a_fresh_dispatch_for_all(void **state)
{
    struct fixture *f = *state;
    const struct result_record jobs[] = { job("CI", "9", PR), job("BK", "0192-ab", PR) };
    aggregate(f, jobs, 2);
    assert_int_equal(f->routes.n, 0);
    assert_non_null(strstr(f->routes.nothing, "not GitHub Actions'"));
}

static void the_issuer_tells_another_ci_that_counts_its_runs(void **state)
{
    struct fixture *f = *state;
    struct result_record jobs[] = { job("CI", "9", PR), job("BK", "10", PR) };
    jobs[0].issuer = (char *)CALLBACK_ISSUER_ACTIONS;
    aggregate(f, jobs, 2);
    assert_int_equal(f->routes.n, 2);
    jobs[1].issuer = (char *)"https://agent.buildkite.com";
    aggregate(f, jobs, 2);
    assert_int_equal(f->routes.n, 0);
}

static void what_the_same_wish_has_started_already_is_not_run_again(void **state)
{
    struct fixture *f = *state;
    struct result_record jobs[] = { job("CI", "9", PR), job("CI", "10", PR) };
    jobs[1].delivery_id = (char *)"asked";
    aggregate(f, jobs, 2);
    assert_int_equal(f->routes.n, 1);
    assert_true(str_is(f->routes.at[0].run_id, "9"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(jobs_of_one_run_become_one_rerun),
        TEST(the_aggregate_of_a_repo_with_known_runs_adds_nothing),
        TEST(the_aggregate_of_a_silent_repo_is_expanded),
        TEST(another_cis_job_is_skipped_and_its_aggregate_is_expanded),
        TEST(what_is_skipped_is_told_once_a_repo_and_reason),
        TEST(check_runs_of_others_are_passed_over_with_the_reason),
        TEST(the_newest_run_of_each_workflow_is_run_again_whole),
        TEST(without_a_known_run_there_is_nothing_to_run_again),
        TEST(a_run_of_another_ci_makes_it_a_fresh_dispatch_for_all),
        TEST(the_issuer_tells_another_ci_that_counts_its_runs),
        TEST(what_the_same_wish_has_started_already_is_not_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

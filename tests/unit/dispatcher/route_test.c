#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/route.h"

#define NOW     1000000000000LL
#define MAX_AGE (3 * 86400000LL)
#define OUR_APP 4242

static const char yaml[] = "L1:\n"
                           "  - org/one\n"
                           "L2:\n"
                           "  - org/two\n"
                           "  - org/night: {events: [nightly]}\n"
                           "L3:\n"
                           "  device: { org/three: [alice] }\n"
                           "L4:\n"
                           "  - Org/Four: bob\n";

struct fixture {
    struct allowlist *list;
    struct event event;
    struct event_facts facts;
    struct routes routes;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_int_equal(allowlist_parse(&f->list, "a.yml", str_of(yaml), NULL), OK);
    f->event = (struct event){ .kind = EVENT_PULL_REQUEST,
                               .action = STR_LIT("opened"),
                               .delivery = STR_LIT("d-1"),
                               .received_ms = NOW };
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

static const struct routes *routed(struct fixture *f)
{
    struct route_input in = { .event = &f->event,
                              .facts = &f->facts,
                              .list = f->list,
                              .now_ms = NOW,
                              .max_age_ms = MAX_AGE,
                              .app_id = OUR_APP };
    routes_clear(&f->routes);
    route(&in, &f->routes);
    return &f->routes;
}

static void rerequest(struct fixture *f, const char *name, const char *external_id)
{
    f->event.kind = EVENT_CHECK_RUN;
    f->event.action = STR_LIT("rerequested");
    f->facts.app_id = OUR_APP;
    strcpy(f->facts.check_name, name);
    strcpy(f->facts.external_id, external_id);
}

static void every_tier_is_dispatched_to(void **state)
{
    const struct routes *r = routed(*state);
    assert_int_equal(r->n, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r->at[i].level, i + 1);
        assert_int_equal(r->at[i].kind, TASK_DISPATCH);
        assert_null(r->at[i].skipped);
    }
    assert_true(str_is(r->at[3].repo, "Org/Four"));
}

static void a_nightly_only_entry_gets_no_dispatch(void **state)
{
    const struct routes *r = routed(*state);
    for (size_t i = 0; i < r->n; i++)
        assert_false(str_is(r->at[i].repo, "org/night"));
}

static void a_push_goes_where_pull_requests_go(void **state)
{
    struct fixture *f = *state;
    f->event.kind = EVENT_PUSH;
    assert_int_equal(routed(f)->n, 4);
}

static void a_deleted_ref_goes_nowhere(void **state)
{
    struct fixture *f = *state;
    f->event.kind = EVENT_PUSH;
    f->facts.deleted = true;
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(f->routes.nothing);
}

static void closed_is_dispatched_like_the_rest(void **state)
{
    struct fixture *f = *state;
    f->event.action = STR_LIT("closed");
    assert_int_equal(routed(f)->n, 4);
}

static void labels_are_never_dispatched(void **state)
{
    struct fixture *f = *state;
    f->event.action = STR_LIT("labeled");
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(f->routes.nothing);
    f->event.action = STR_LIT("unlabeled");
    assert_int_equal(routed(f)->n, 0);
}

static void an_event_past_the_maximum_age_is_skipped_for_each_and_says_so(void **state)
{
    struct fixture *f = *state;
    f->event.received_ms = NOW - MAX_AGE;
    assert_null(routed(f)->at[0].skipped);
    f->event.received_ms = NOW - MAX_AGE - 1;
    assert_int_equal(routed(f)->n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(f->routes.at[i].skipped, "CRCR_MAX_EVENT_AGE"));
}

static void a_replay_again_has_no_maximum_age(void **state)
{
    struct fixture *f = *state;
    f->event.received_ms = NOW - MAX_AGE - 1;
    f->event.again = STR_LIT("ab12");
    assert_int_equal(routed(f)->n, 4);
    assert_null(f->routes.at[0].skipped);
    assert_false(route_is_old(&f->event, NOW, MAX_AGE));
}

static void an_empty_allowlist_is_no_error(void **state)
{
    struct fixture *f = *state;
    allowlist_free(f->list);
    assert_int_equal(allowlist_parse(&f->list, "a.yml", STR_LIT(""), NULL), OK);
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(f->routes.nothing);
}

static void our_check_run_is_run_again(void **state)
{
    struct fixture *f = *state;
    rerequest(f, "crcr/org/three/build/test / gpu", "987654:17");
    assert_int_equal(routed(f)->n, 1);
    assert_int_equal(f->routes.at[0].kind, TASK_RERUN_FAILED);
    assert_true(str_is(f->routes.at[0].repo, "org/three"));
    assert_true(str_is(f->routes.at[0].run_id, "987654"));
    assert_int_equal(f->routes.at[0].level, 3);
    assert_null(f->routes.at[0].skipped);
    rerequest(f, "crcr/org/FOUR/build/test", "5");
    assert_null(routed(f)->at[0].skipped);
    assert_true(str_is(f->routes.at[0].repo, "Org/Four"));
}

static void a_check_run_of_another_app_is_not_ours_whatever_its_name(void **state)
{
    struct fixture *f = *state;
    rerequest(f, "crcr/org/three/build/test", "987654:17");
    f->facts.app_id = OUR_APP + 1;
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(f->routes.nothing);
}

static void reruns_that_cannot_be_are_skipped_with_the_reason(void **state)
{
    static const struct {
        const char *name, *external_id, *reason;
    } cases[] = {
        { "crcr/org/two/build/test", "1:2", "levels 3 and 4" },
        { "crcr/org/three/build/test", "uuid-1:2", "no GitHub Actions run" },
        { "crcr/org/three/build/test", "ci:51:2", "no GitHub Actions run" },
        { "crcr/org/three/build/test", "", "no GitHub Actions run" },
        { "crcr/org/three/build/test", "d:x:2", "no GitHub Actions run" },
        { "crcr/org/three", "1:2", "names no delivery" },
        { "crcr/org/three", "d:x", "names no delivery" },
        { "crcr/org/three", "d::2", "names no delivery" },
        { "crcr/org/three", "d:x:0", "names no delivery" },
        { "crcr/org/two", "d:x:2", "levels 3 and 4" },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rerequest(f, cases[i].name, cases[i].external_id);
        assert_int_equal(routed(f)->n, 1);
        assert_non_null(strstr(f->routes.at[0].skipped, cases[i].reason));
    }
}

static void an_aggregate_check_is_expanded_by_its_own_tier(void **state)
{
    struct fixture *f = *state;
    rerequest(f, "crcr/ORG/three", "d:0b3c-1:17");
    assert_int_equal(routed(f)->n, 1);
    assert_int_equal(f->routes.at[0].kind, TASK_EXPAND);
    assert_int_equal(f->routes.at[0].level, 3);
    assert_true(str_is(f->routes.at[0].repo, "org/three"));
    assert_true(str_is(f->routes.at[0].run_id, "d:0b3c-1:17"));
    assert_null(f->routes.at[0].skipped);
}

static void suite_rerequest(struct fixture *f)
{
    f->event.kind = EVENT_CHECK_SUITE;
    f->event.action = STR_LIT("rerequested");
    f->facts.app_id = OUR_APP;
    f->facts.check_suite_id = 118578147;
    strcpy(f->facts.repo, "pytorch/pytorch");
}

static void a_check_suite_is_expanded_for_the_upstream_whose_it_is(void **state)
{
    struct fixture *f = *state;
    suite_rerequest(f);
    assert_int_equal(routed(f)->n, 1);
    assert_int_equal(f->routes.at[0].kind, TASK_EXPAND);
    assert_int_equal(f->routes.at[0].level, 4);
    assert_true(str_is(f->routes.at[0].repo, "pytorch/pytorch"));
    assert_true(str_is(f->routes.at[0].run_id, "118578147"));
    assert_null(f->routes.at[0].skipped);
    f->event.received_ms = NOW - MAX_AGE - 1;
    assert_non_null(strstr(routed(f)->at[0].skipped, "CRCR_MAX_EVENT_AGE"));
}

static void a_check_suite_of_another_app_is_not_ours(void **state)
{
    struct fixture *f = *state;
    suite_rerequest(f);
    f->facts.app_id = OUR_APP + 1;
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(strstr(f->routes.nothing, "not ours"));
}

static void a_check_run_of_a_repo_that_left_the_allowlist_is_not_run_again(void **state)
{
    struct fixture *f = *state;
    rerequest(f, "crcr/org/gone/build/test", "1:2");
    assert_int_equal(routed(f)->n, 0);
    assert_non_null(strstr(f->routes.nothing, "not in the allowlist"));
}

static void a_name_that_we_never_give_is_nothing_of_ours(void **state)
{
    static const char *const names[] = { "lint", "crcr/", "crcr/org", "crcr//repo/x",
                                         "crcr/o o/r" };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rerequest(f, names[i], "1:2");
        assert_int_equal(routed(f)->n, 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_tier_is_dispatched_to),
        TEST(a_nightly_only_entry_gets_no_dispatch),
        TEST(a_push_goes_where_pull_requests_go),
        TEST(a_deleted_ref_goes_nowhere),
        TEST(closed_is_dispatched_like_the_rest),
        TEST(labels_are_never_dispatched),
        TEST(an_event_past_the_maximum_age_is_skipped_for_each_and_says_so),
        TEST(a_replay_again_has_no_maximum_age),
        TEST(an_empty_allowlist_is_no_error),
        TEST(our_check_run_is_run_again),
        TEST(a_check_run_of_another_app_is_not_ours_whatever_its_name),
        TEST(reruns_that_cannot_be_are_skipped_with_the_reason),
        TEST(an_aggregate_check_is_expanded_by_its_own_tier),
        TEST(a_check_suite_is_expanded_for_the_upstream_whose_it_is),
        TEST(a_check_suite_of_another_app_is_not_ours),
        TEST(a_check_run_of_a_repo_that_left_the_allowlist_is_not_run_again),
        TEST(a_name_that_we_never_give_is_nothing_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

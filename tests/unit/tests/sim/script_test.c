#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "tests/sim/script.h"

#define DISPATCH STR_LIT("/repos/org/a/dispatches")

static struct script *script_of(const char *json)
{
    struct script *s = script_new();
    json_t *rules = json_loads(json, 0, NULL);
    struct why why;

    assert_non_null(rules);
    assert_int_equal(script_add(s, rules, &why), OK);
    json_decref(rules);
    return s;
}

static int status_of(const struct rule_action *action)
{
    return action ? action->status : -1;
}

static void the_first_rule_that_matches_is_taken(void **state)
{
    (void)state;
    struct script *s = script_of("[{\"method\":\"GET\",\"status\":500},"
                                 " {\"path\":\"/repos/*/dispatches\",\"status\":503},"
                                 " {\"status\":504}]");

    assert_int_equal(status_of(script_take(s, STR_LIT("POST"), DISPATCH, STR_LIT("org/a"))), 503);
    assert_int_equal(status_of(script_take(s, STR_LIT("GET"), DISPATCH, STR_LIT("org/a"))), 500);
    assert_int_equal(status_of(script_take(s, STR_LIT("POST"), STR_LIT("/app"), STR_NONE)), 504);
    script_free(s);
}

static void a_rule_for_a_repo_ignores_case_and_other_repos(void **state)
{
    (void)state;
    struct script *s = script_of("{\"repo\":\"Org/*\",\"status\":404}");

    assert_int_equal(status_of(script_take(s, STR_LIT("GET"), DISPATCH, STR_LIT("oRG/a"))), 404);
    assert_null(script_take(s, STR_LIT("GET"), DISPATCH, STR_LIT("other/a")));
    assert_null(script_take(s, STR_LIT("GET"), STR_LIT("/app"), STR_NONE));
    script_free(s);
}

static void skip_lets_pass_and_count_ends_a_rule(void **state)
{
    (void)state;
    struct script *s = script_of("{\"skip\":1,\"count\":2,\"status\":500}");
    static const int expected[] = { -1, 500, 500, -1, -1 };

    for (size_t i = 0; i < 5; i++)
        assert_int_equal(status_of(script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE)),
                         expected[i]);
    script_free(s);
}

static void a_used_up_rule_makes_room_for_the_next(void **state)
{
    (void)state;
    struct script *s = script_of("[{\"count\":1,\"status\":500}, {\"status\":404}]");

    assert_int_equal(status_of(script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE)), 500);
    assert_int_equal(status_of(script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE)), 404);
    script_free(s);
}

static void only_delay_and_effect_keep_the_usual_handling(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool replaces;
    } rows[] = {
        { "{\"delay_ms\":5}", false }, { "{\"headers\":{\"a\":\"b\"}}", false },
        { "{\"status\":500}", true },  { "{\"status\":500,\"effect\":true}", false },
        { "{\"reset\":true}", true },  { "{\"reset\":true,\"effect\":true}", false },
        { "{\"hang\":true}", true },   { "{\"hang\":true,\"effect\":true}", false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct script *s = script_of(rows[i].rule);

        assert_int_equal(rule_replaces(script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE)),
                         rows[i].replaces);
        script_free(s);
    }
}

static void retry_after_becomes_a_header(void **state)
{
    (void)state;
    struct script *s = script_of("{\"status\":429,\"retry_after\":7}");
    const struct rule_action *action = script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE);

    assert_string_equal(json_string_value(json_object_get(action->headers, "Retry-After")), "7");
    script_free(s);
}

static void a_wrong_rule_is_refused_with_all_that_came_with_it(void **state)
{
    (void)state;
    static const struct {
        const char *rules;
        const char *said;
    } rows[] = {
        { "[{\"status\":500},{\"statuss\":1}]", "rule 2: statuss is no field of a rule" },
        { "{\"status\":99}", "status must be 100 to 599" },
        { "{\"count\":-1}", "count must be a number" },
        { "{\"hang\":1}", "hang must be true or false" },
        { "{\"headers\":{\"a\":1}}", "header a must be a string" },
        { "[7]", "a rule must be an object" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct script *s = script_new();
        json_t *rules = json_loads(rows[i].rules, 0, NULL);
        struct why why;

        assert_int_equal(script_add(s, rules, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, rows[i].said));
        assert_null(script_take(s, STR_LIT("GET"), DISPATCH, STR_NONE));
        json_decref(rules);
        script_free(s);
    }
}

static void a_glob_is_over_the_whole_text_and_a_star_takes_slashes(void **state)
{
    (void)state;
    assert_true(glob_matches("/repos/*/dispatches", DISPATCH));
    assert_false(glob_matches("/repos/*", STR_LIT("/app")));
    assert_false(glob_matches("/repos", DISPATCH));
    assert_false(glob_matches("/REPOS/*", DISPATCH));
    assert_true(glob_matches_repo("org/a", STR_LIT("ORG/A")));
    assert_false(glob_matches_repo("*", STR_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_matches_is_taken),
        cmocka_unit_test(a_rule_for_a_repo_ignores_case_and_other_repos),
        cmocka_unit_test(skip_lets_pass_and_count_ends_a_rule),
        cmocka_unit_test(a_used_up_rule_makes_room_for_the_next),
        cmocka_unit_test(only_delay_and_effect_keep_the_usual_handling),
        cmocka_unit_test(retry_after_becomes_a_header),
        cmocka_unit_test(a_wrong_rule_is_refused_with_all_that_came_with_it),
        cmocka_unit_test(a_glob_is_over_the_whole_text_and_a_star_takes_slashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

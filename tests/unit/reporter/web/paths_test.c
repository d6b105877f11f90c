#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "reporter/web/paths.h"

static bool is_text(struct str s, const char *text)
{
    return s.ptr && str_is(s, text);
}

static void a_path_gives_its_name_its_id_and_its_parameters(void **state)
{
    (void)state;
    struct path_ask ask;
    assert_true(path_ask_parse(&ask, STR_LIT("/api/crcr/repos/org/four")));
    assert_string_equal(ask.path->name, "repo");
    assert_true(is_text(ask.id, "org/four"));
    path_ask_clear(&ask);
    assert_true(path_ask_parse(&ask, STR_LIT("/api/crcr/prs?before=12-7&x=y&q=A%20b+c%26%3d")));
    assert_string_equal(ask.path->name, "prs");
    assert_true(is_text(ask.params[0], "a b c&="));
    assert_true(is_text(ask.params[2], "12-7"));
    path_ask_clear(&ask);
    assert_true(path_ask_parse(&ask, STR_LIT("/repo/org/four/badge.svg")));
    assert_string_equal(ask.path->type, "image/svg+xml");
    assert_true(is_text(ask.id, "org/four"));
    path_ask_clear(&ask);
    assert_true(path_ask_parse(&ask, STR_LIT("/api/crcr/prs?q=&before")));
    assert_true(is_text(ask.params[0], ""));
    path_ask_clear(&ask);
    path_ask_clear(&ask);
    assert_true(path_ask_parse(&ask, STR_LIT("/api/crcr/prs")));
    assert_true(is_text(ask.params[0], "") && is_text(ask.params[1], "all"));
    assert_true(is_text(ask.params[2], "") && path_number(ask.params[2]) == 0);
    path_ask_clear(&ask);
}

static void what_is_no_path_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "?",
                                       "/",
                                       "/api/crcr/live",
                                       "/api/crcr/summary/x",
                                       "/api/crcr/repos/",
                                       "/api/crcr/repos/org",
                                       "/api/crcr/repos/org/four/x",
                                       "/api/crcr/prs/0",
                                       "/api/crcr/prs/007",
                                       "/api/crcr/prs/12x",
                                       "/api/crcr/deliveries/a%2fb",
                                       "/api/crcr/prs?q=a%0ab",
                                       "/api/crcr/prs?q=100%",
                                       "/api/crcr/deliveries/%" };
    struct path_ask ask;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(path_ask_parse(&ask, str_of(bad[i])));
    assert_false(path_ask_parse(&ask, STR_NONE));
}

static void a_page_is_where_its_id_is_one(void **state)
{
    (void)state;
    static const char *const pages[] = { "/",         "/prs",
                                         "/pr/7",     "/delivery/8-a",
                                         "/repo/o/r", "/repo/o/r/since",
                                         "/pipeline", "/metrics-board" };
    static const char *const none[] = { "",        "/prz",        "/pr",          "/pr/",
                                        "/pr/abc", "/pr/0",       "/prs/1",       "/delivery/a_b",
                                        "/repo/o", "/repo/o/r/x", "/repo//since", "/repo/since" };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        assert_true(path_is_page(str_of(pages[i])));
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(path_is_page(str_of(none[i])));
}

/* What shares a key shares an answer. */
static void only_what_asks_for_the_same_has_the_same_key(void **state)
{
    (void)state;
    static const char *const asks[] = { "/api/crcr/prs?q=a&before=1-2",
                                        "/api/crcr/prs?before=1-2&q=A",
                                        "/api/crcr/prs?z=9&q=%61&before=%31-2",
                                        "/api/crcr/prs?Q=a&BEFORE=1-2&q=b&before=3-4",
                                        "/api/crcr/%70rs?state=&q=a&before=1-2&limit=x",
                                        "/api/crcr/prs?state=all&q=a&before=1-2",
                                        "/api/crcr/prs?q=a1",
                                        "/api/crcr/prs?q=",
                                        "/api/crcr/prs?q=1&before=1-2",
                                        "/api/crcr/prs?state=failing",
                                        "/api/crcr/summary?days=7",
                                        "/api/crcr/summary?days=1",
                                        "/api/crcr/repos/o/Four?before=1",
                                        "/api/crcr/repos/o/five?before=1",
                                        "/api/crcr/prs/1",
                                        "/api/crcr/deliveries/1a",
                                        "/api/crcr/deliveries/1A" };
    enum { ALIKE = 6, N = sizeof(asks) / sizeof(asks[0]) };
    struct path_ask made[N];
    for (size_t i = 0; i < N; i++)
        assert_true(path_ask_parse(&made[i], str_of(asks[i])));
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal(str_eq(made[i].key, made[j].key), i < ALIKE && j < ALIKE);
    for (size_t i = 0; i < N; i++)
        path_ask_clear(&made[i]);
}

static void two_ways_to_write_one_page_have_one_key(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "/api/crcr/summary", "/api/crcr/summary?days=7" },
        { "/api/crcr/trends?days=", "/api/crcr/trends?DAYS=%37" },
        { "/api/crcr/repos/Org/Four", "/api/crcr/repos/org%2ffOUR?before=&x=1" },
        { "/api/crcr/deliveries/1A", "/api/crcr/deliveries/1A?limit=1000&limit=7" },
        { "/repo/org/four/badge.svg?1", "/repo/ORG/four/badge.svg?days=8" },
        { "/api/crcr/prs", "/api/crcr/prs?q=&state=all&before" },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct path_ask one, other;
        assert_true(path_ask_parse(&one, str_of(pairs[i][0])));
        assert_true(path_ask_parse(&other, str_of(pairs[i][1])));
        assert_true(str_eq(one.key, other.key));
        path_ask_clear(&one);
        path_ask_clear(&other);
    }
}

static void a_value_that_is_none_of_those_accepted_is_a_fault_and_has_no_key(void **state)
{
    (void)state;
    static const char *const faults[][2] = {
        { "/api/crcr/prs?state=x", "state must be failing, running, passing or all" },
        { "/api/crcr/prs?state=Failing", "state must be failing, running, passing or all" },
        { "/api/crcr/prs?state=failing%00", "state must be failing, running, passing or all" },
        { "/api/crcr/prs?state=fail", "state must be failing, running, passing or all" },
        { "/api/crcr/summary?days=2", "days must be 1, 7 or 30" },
        { "/api/crcr/summary?days=07", "days must be 1, 7 or 30" },
        { "/api/crcr/summary?days=+7", "days must be 1, 7 or 30" },
        { "/api/crcr/summary?days=1|7", "days must be 1, 7 or 30" },
        { "/api/crcr/trends?days=8", "days must be 7, 30 or 90" },
        { "/api/crcr/repos/o/r/trends?days=1", "days must be 7, 30 or 90" },
        { "/api/crcr/deliveries/1?limit=999", "limit must be 1000 or 10000" },
        { "/api/crcr/repos/o/r?before=x", "before must be as an answer has it" },
        { "/api/crcr/repos/o/r?before=%23", "before must be as an answer has it" },
        { "/api/crcr/repos/o/r?before=-1", "before must be as an answer has it" },
        { "/api/crcr/repos/o/r?before=01", "before must be as an answer has it" },
        { "/api/crcr/repos/o/r?before=1-1", "before must be as an answer has it" },
        { "/api/crcr/repos/o/r?before=9223372036854775808", "before must be as an answer has it" },
        { "/api/crcr/prs?before=1", "before must be as an answer has it" },
        { "/api/crcr/prs?before=1-", "before must be as an answer has it" },
        { "/api/crcr/prs?before=-1", "before must be as an answer has it" },
        { "/api/crcr/prs?before=1-02", "before must be as an answer has it" },
        { "/api/crcr/prs?before=1-2-3", "before must be as an answer has it" },
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct path_ask ask;
        assert_true(path_ask_parse(&ask, str_of(faults[i][0])));
        assert_non_null(ask.fault);
        assert_string_equal(ask.fault, faults[i][1]);
        assert_null(ask.key.ptr);
        path_ask_clear(&ask);
    }
}

static void parameters_are_bounded(void **state)
{
    (void)state;
    char long_one[5000];
    struct path_ask ask;
    struct str target = { long_one, 900 };
    memset(long_one, 'a', sizeof(long_one));
    memcpy(long_one, "/api/crcr/prs?q=", 16);
    assert_true(path_ask_parse(&ask, target));
    path_ask_clear(&ask);
    target.len = 2000;
    assert_false(path_ask_parse(&ask, target));
    target.len = sizeof(long_one);
    assert_false(path_ask_parse(&ask, target));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_gives_its_name_its_id_and_its_parameters),
        cmocka_unit_test(what_is_no_path_is_refused),
        cmocka_unit_test(a_page_is_where_its_id_is_one),
        cmocka_unit_test(only_what_asks_for_the_same_has_the_same_key),
        cmocka_unit_test(two_ways_to_write_one_page_have_one_key),
        cmocka_unit_test(a_value_that_is_none_of_those_accepted_is_a_fault_and_has_no_key),
        cmocka_unit_test(parameters_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

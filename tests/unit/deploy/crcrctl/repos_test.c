#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/repos.h"

static const struct {
    const char *repos, *column, *rest, *json;
} table[] = {
    { NULL, "", "", "{\"repo\":null,\"repos\":[]" },
    { "", "", "", "{\"repo\":null,\"repos\":[]" },
    { "o/a", "o/a", "", "{\"repo\":\"o/a\",\"repos\":[\"o/a\"]" },
    { "o/a,o/b", "o/a +1", "; for o/a, o/b", "{\"repo\":null,\"repos\":[\"o/a\",\"o/b\"]" },
    { "o/a,", "o/a", "", "{\"repo\":\"o/a\",\"repos\":[\"o/a\"]" },
    { "o/\x1b,o/b", "o/\x1b +1", "; for o/ , o/b",
      "{\"repo\":null,\"repos\":[\"o/\\u001b\",\"o/b\"]" },
};

static void all_are_named_and_one_alone_has_a_member_of_its_own(void **state)
{
    struct buf text;
    char column[32];

    (void)state;
    buf_init(&text, 1000);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct str repos = str_of(table[i].repos);
        repos_short(repos, column, sizeof(column));
        assert_string_equal(column, table[i].column);
        buf_reset(&text);
        repos_put_rest(&text, repos);
        assert_true(str_is(buf_str(&text), table[i].rest));
        buf_reset(&text);
        buf_putc(&text, '{');
        repos_json(&text, repos);
        assert_true(str_is(buf_str(&text), table[i].json));
    }
    buf_clear(&text);
}

static void each_is_found_whole_and_in_any_case(void **state)
{
    struct str repos = STR_LIT("o/a,Org/Bc,o/d");

    (void)state;
    assert_true(repos_have(repos, STR_LIT("o/a")));
    assert_true(repos_have(repos, STR_LIT("ORG/bc")));
    assert_true(repos_have(repos, STR_LIT("o/d")));
    assert_true(repos_have(repos, STR_NONE));
    assert_true(repos_have(STR_NONE, STR_NONE));
    assert_false(repos_have(repos, STR_LIT("org/b")));
    assert_false(repos_have(repos, STR_LIT("o/a,org/bc")));
    assert_false(repos_have(STR_NONE, STR_LIT("o/a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_named_and_one_alone_has_a_member_of_its_own),
        cmocka_unit_test(each_is_found_whole_and_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

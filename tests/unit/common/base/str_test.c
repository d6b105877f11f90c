#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "common/base/str.h"

static void absent_and_empty_differ_where_it_matters(void **state)
{
    (void)state;
    assert_null(str_of(NULL).ptr);
    assert_true(str_eq(STR_NONE, STR_LIT("")));
    assert_true(str_is(STR_LIT(""), ""));
    assert_false(str_is(STR_NONE, ""));
    assert_null(str_dup(STR_NONE));
    char *empty = str_dup(STR_LIT(""));
    assert_string_equal(empty, "");
    free(empty);
}

static void comparison_is_over_bytes(void **state)
{
    (void)state;
    assert_true(str_eq((struct str){ "a\0b", 3 }, (struct str){ "a\0b", 3 }));
    assert_false(str_eq((struct str){ "a\0b", 3 }, (struct str){ "a\0c", 3 }));
    assert_true(str_cmp(STR_LIT("a"), STR_LIT("b")) < 0);
    assert_true(str_cmp(STR_LIT("a"), STR_LIT("aa")) < 0);
    assert_true(str_cmp(STR_LIT("\xff"), STR_LIT("a")) > 0);
    assert_int_equal(str_cmp(STR_NONE, STR_LIT("")), 0);
}

static void only_ascii_case_is_ignored(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(STR_LIT("PyTorch/PyTorch"), STR_LIT("pytorch/pytorch")));
    assert_false(str_eq_nocase(STR_LIT("[x"), STR_LIT("{x")));
    assert_false(str_eq_nocase(STR_LIT("\xc4"), STR_LIT("\xe4")));
    assert_false(str_eq_nocase(STR_LIT("ab"), STR_LIT("abc")));
}

static void beginnings_and_ends(void **state)
{
    (void)state;
    struct str s = STR_LIT("refs/tags/x");
    assert_true(str_starts(s, "refs/") && str_ends(s, "/x") && str_starts(s, "") &&
                str_ends(s, ""));
    assert_false(str_starts(s, "refs/tags/xy") || str_ends(s, "zrefs/tags/x"));
    assert_true(str_starts(STR_NONE, ""));
    assert_true(str_is(str_from(s, 10), "x"));
    assert_true(str_is(str_from(s, 99), ""));
    assert_null(str_from(STR_NONE, 1).ptr);
    assert_true(str_is(str_trim(STR_LIT(" \t\r\n a b \v\f")), "a b"));
    assert_true(str_is(str_trim(STR_LIT("  ")), ""));
}

static void finding(void **state)
{
    (void)state;
    assert_int_equal(str_find(STR_LIT("a/b/c"), '/'), 1);
    assert_int_equal(str_find(STR_LIT("abc"), '/'), -1);
    assert_int_equal(str_find(STR_NONE, '/'), -1);
    assert_int_equal(str_find_str(STR_LIT("abcabd"), STR_LIT("abd")), 3);
    assert_int_equal(str_find_str(STR_LIT("ab"), STR_LIT("abd")), -1);
    assert_int_equal(str_find_str(STR_NONE, STR_LIT("a")), -1);
    assert_int_equal(str_find_str(STR_LIT("a"), STR_LIT("")), 0);
}

static void split_into(const char *text, const char *expected)
{
    struct str rest = str_of(text), part;
    char seen[64] = "";
    size_t n = 0;
    while (str_split(&rest, ',', &part))
        n += (size_t)snprintf(seen + n, sizeof(seen) - n, "%.*s;", STR_ARG(part));
    assert_string_equal(seen, expected);
    assert_false(str_split(&rest, ',', &part));
}

static void splitting(void **state)
{
    (void)state;
    split_into("a,,b", "a;;b;");
    split_into("a", "a;");
    split_into("", "");
    split_into(NULL, "");
    split_into("a,", "a;");
    split_into(",a", ";a;");
    split_into(",", ";");
}

static void numbers_are_whole_and_checked(void **state)
{
    (void)state;
    uint64_t u = 7;
    int64_t i = 7;
    assert_true(str_to_u64(STR_LIT("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(str_to_u64(STR_LIT("18446744073709551616"), &u));
    assert_false(str_to_u64(STR_LIT("99999999999999999999"), &u));
    assert_true(u == UINT64_MAX); /* untouched */
    assert_true(str_to_i64(STR_LIT("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_true(str_to_i64(STR_LIT("9223372036854775807"), &i) && i == INT64_MAX);
    assert_false(str_to_i64(STR_LIT("9223372036854775808"), &i));
    assert_false(str_to_i64(STR_LIT("-9223372036854775809"), &i));
    assert_true(str_to_i64(STR_LIT("-0"), &i) && i == 0);
    char text[STR_NUMBER_SIZE];
    assert_true(str_is(str_number(text, 0), "0"));
    assert_true(str_is(str_number(text, 1020304050), "1020304050") && text[10] == '\0');
    assert_true(str_is(str_number(text, -7), "-7"));
    assert_true(str_is(str_seconds(text, 0), "0.000"));
    assert_true(str_is(str_seconds(text, 999), "0.999"));
    assert_true(str_is(str_seconds(text, 61005), "61.005") && text[6] == '\0');
    assert_true(str_is(str_seconds(text, INT64_MAX), "9223372036854775.807"));
    assert_true(str_is(str_number(text, INT64_MIN), "-9223372036854775808"));
    assert_true(str_is(str_number(text, INT64_MAX), "9223372036854775807"));
    static const char *const bad[] = { "", "-", "+1", " 1", "1 ", "0x1", "1.0", "--1" };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        assert_false(str_to_i64(str_of(bad[k]), &i));
    assert_false(str_to_u64(STR_NONE, &u));
}

static void a_copy_that_does_not_fit_is_empty(void **state)
{
    (void)state;
    char to[4] = "xyz";
    assert_true(str_copy(to, sizeof(to), STR_LIT("abc")));
    assert_string_equal(to, "abc");
    assert_false(str_copy(to, sizeof(to), STR_LIT("abcd")));
    assert_string_equal(to, "");
    assert_true(str_copy(to, sizeof(to), STR_NONE));
    assert_true(str_lower(to, sizeof(to), STR_LIT("A@[")));
    assert_string_equal(to, "a@[");
    assert_false(str_lower(to, sizeof(to), STR_LIT("ABCD")));
    assert_string_equal(to, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_and_empty_differ_where_it_matters),
        cmocka_unit_test(comparison_is_over_bytes),
        cmocka_unit_test(only_ascii_case_is_ignored),
        cmocka_unit_test(beginnings_and_ends),
        cmocka_unit_test(finding),
        cmocka_unit_test(splitting),
        cmocka_unit_test(numbers_are_whole_and_checked),
        cmocka_unit_test(a_copy_that_does_not_fit_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

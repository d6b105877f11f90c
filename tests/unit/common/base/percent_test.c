#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/percent.h"

static void hex_is_decoded_and_a_plus_is_a_blank_in_forms_alone(void **state)
{
    (void)state;
    char to[16];
    assert_true(str_is(percent_decode(STR_LIT("a%2Fb%3d+c"), true, to), "a/b= c"));
    assert_true(str_is(percent_decode(STR_LIT("a+b"), false, to), "a+b"));
    assert_true(str_eq(percent_decode(STR_LIT("%00%ff"), false, to), STR_LIT("\0\xff")));
    assert_non_null(percent_decode(STR_NONE, false, to).ptr);
}

static void a_percent_sign_without_two_hex_digits_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "%", "100%", "%4", "%4g", "%g4", "a%%41" };
    char to[16];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(percent_decode(str_of(bad[i]), true, to).ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_is_decoded_and_a_plus_is_a_blank_in_forms_alone),
        cmocka_unit_test(a_percent_sign_without_two_hex_digits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/daemon/args.h"

static void flags_and_roles_are_read(void **state)
{
    (void)state;
    char *argv[] = { "x", "--check-config", "--roles", "l1,l2", NULL };
    struct daemon_args args;
    struct why why;
    assert_int_equal(args_parse(4, argv, &args, &why), OK);
    assert_true(args.check_config);
    assert_false(args.help || args.version);
    assert_true(str_is(args.roles, "l1,l2"));
    char *joined[] = { "x", "--roles=router", "--version", "-h", NULL };
    assert_int_equal(args_parse(4, joined, &args, &why), OK);
    assert_true(str_is(args.roles, "router"));
    assert_true(args.help && args.version);
}

static void no_arguments_are_fine(void **state)
{
    (void)state;
    char *argv[] = { "x", NULL };
    struct daemon_args args;
    struct why why;
    assert_int_equal(args_parse(1, argv, &args, &why), OK);
    assert_null(args.roles.ptr);
}

static void others_are_refused_by_name(void **state)
{
    (void)state;
    static char *const bad[] = { "--rolls", "--roles", "start", "--help=1", "" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *argv[] = { "x", bad[i], NULL };
        struct daemon_args args;
        struct why why = { "" };
        assert_int_equal(args_parse(2, argv, &args, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_and_roles_are_read),
        cmocka_unit_test(no_arguments_are_fine),
        cmocka_unit_test(others_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/base/err.h"

static void why_set_returns_the_kind_and_formats(void **state)
{
    (void)state;
    struct why why;
    assert_int_equal(why_set(&why, ERR_RETRY, "%s is %d", "x", 7), ERR_RETRY);
    assert_string_equal(why.text, "x is 7");
    assert_int_equal(why_set(NULL, ERR_STOP, "nobody asks"), ERR_STOP);
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    struct why why;
    (void)why_set(&why, ERR_REFUSE, "%01000d", 1);
    assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
    (void)why_prefix(&why, ERR_REFUSE, "%0600d", 2);
    assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
}

static void a_prefix_goes_in_front_also_of_itself(void **state)
{
    (void)state;
    struct why why;
    (void)why_set(&why, ERR_REFUSE, "no such file");
    assert_int_equal(why_prefix(&why, ERR_STOP, "line %d", 3), ERR_STOP);
    assert_string_equal(why.text, "line 3: no such file");
    (void)why_set(&why, ERR_REFUSE, "again: %s", why.text);
    assert_string_equal(why.text, "again: line 3: no such file");
    (void)why_prefix(&why, ERR_REFUSE, "%.5s", why.text);
    assert_string_equal(why.text, "again: again: line 3: no such file");
}

static void kinds_have_names(void **state)
{
    (void)state;
    static const char *const names[] = { "ok", "refuse", "retry", "unknown", "stop" };
    for (int i = OK; i <= ERR_STOP; i++)
        assert_string_equal(err_name((enum err)i), names[i]);
    assert_string_equal(err_name((enum err)99), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_set_returns_the_kind_and_formats),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(a_prefix_goes_in_front_also_of_itself),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

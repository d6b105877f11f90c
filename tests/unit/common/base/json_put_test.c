#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/json_put.h"

static void a_comma_comes_only_between_two(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) to;
    buf_init(&to, 1000);
    json_put_comma(&to);
    buf_putc(&to, '{');
    json_put_text(&to, "a", STR_LIT("{"));
    json_put_number(&to, "b", 1);
    json_put_name(&to, "c");
    buf_putc(&to, '[');
    json_put_comma(&to);
    buf_putc(&to, '1');
    json_put_comma(&to);
    buf_puts(&to, "2]");
    json_put_begin(&to, "d", '[');
    json_put_begin(&to, NULL, '{');
    buf_putc(&to, '}');
    json_put_begin(&to, NULL, '[');
    buf_puts(&to, "]]}");
    assert_string_equal(to.ptr, "{\"a\":\"{\",\"b\":1,\"c\":[1,2],\"d\":[{},[]]}");
}

static void what_is_unknown_is_null(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) to;
    buf_init(&to, 1000);
    json_put_text(&to, "a", STR_NONE);
    json_put_text(&to, "b", STR_LIT(""));
    json_put_number(&to, "c", -1);
    json_put_seconds(&to, "d", -1);
    json_put_seconds(&to, "e", 1050);
    json_put_time(&to, "f", 0);
    json_put_string(&to, "g", "");
    json_put_string(&to, "h", NULL);
    json_put_string(&to, "i", "x");
    assert_string_equal(to.ptr,
                        "\"a\":null,\"b\":\"\",\"c\":null,\"d\":null,\"e\":1.050,\"f\":null,"
                        "\"g\":null,\"h\":null,\"i\":\"x\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comma_comes_only_between_two),
        cmocka_unit_test(what_is_unknown_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

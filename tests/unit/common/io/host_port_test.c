#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/io/host_port.h"

static void addresses_are_taken_apart(void **state)
{
    static const char *const good[][3] = {
        { "127.0.0.1:80", "127.0.0.1", "80" },
        { "localhost:0", "localhost", "0" },
        { "[::1]:65535", "::1", "65535" },
        { "[fe80::1%eth0]:1", "fe80::1%eth0", "1" },
        { "redis.example:6379", "redis.example", "6379" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct host_port at;
        struct why why;
        assert_int_equal(host_port_parse(good[i][0], &at, &why), OK);
        assert_string_equal(at.host, good[i][1]);
        assert_string_equal(at.port, good[i][2]);
    }
}

static void anything_else_is_refused_with_its_text(void **state)
{
    static const char *const bad[] = { "",     "host",       "host:",   ":80",    "host:http",
                                       "h:-1", "h:+1",       "h:65536", "::1:80", "[]:80",
                                       "h:1 ", "h:99999999", "[::1:80", "[::1]",  "[::1]80" };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct host_port at = { "untouched", "1" };
        struct why why = { "" };
        assert_int_equal(host_port_parse(bad[i], &at, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, bad[i]));
        assert_string_equal(at.host, "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_taken_apart),
        cmocka_unit_test(anything_else_is_refused_with_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

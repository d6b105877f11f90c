#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/url.h"

static void a_url_is_shown_without_login_query_and_fragment(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown;
    } cases[] = {
        { "https://hud.example", "https://hud.example" },
        { "https://hud.example:8443/api/v3", "https://hud.example:8443/api/v3" },
        { "https://[::1]:1/a", "https://[::1]:1/a" },
        { "https://h/list.yml?token=SECRET", "https://h/list.yml" },
        { "https://h?token=SECRET", "https://h" },
        { "https://h/a#SECRET", "https://h/a" },
        { "https://h/a#SECRET?SECRET", "https://h/a" },
        { "https://user:SECRET@h/a", "https://h/a" },
        { "https://SECRET@h", "https://h" },
        { "https://user:SE@CRET@h:1/@scope/a", "https://h:1/@scope/a" },
        { "https://user:SECRET@h?SECRET@x", "https://h" },
        { "redis://:SECRET@h:6379/0", "redis://h:6379/0" },
        { "user:SECRET@h:6379", "h:6379" },
        { "h/a?back=https://SECRET@h/SECRET", "h/a" },
        { "/etc/crcr/allowlist.yml", "/etc/crcr/allowlist.yml" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char to[100];
        assert_string_equal(url_shown(to, sizeof(to), str_of(cases[i].url)).ptr, cases[i].shown);
    }
}

static void what_does_not_fit_is_cut_off(void **state)
{
    (void)state;
    char to[12];
    assert_string_equal(url_shown(to, sizeof(to), STR_LIT("https://h/abc?SECRET")).ptr,
                        "https://h/a");
    assert_int_equal(url_shown(to, sizeof(to), STR_NONE).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_shown_without_login_query_and_fragment),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Settings that paths are added to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/daemon/config.h"

/* What is said of the setting; "" when it is taken, whose value is copied to value. */
static const char *said_of(const char *setting, const char *name, char value[200])
{
    static char text[4096];
    char *environment[] = { (char *)(uintptr_t)setting, "KAFKA_BROKERS=k:1",
                            "REDIS_ENDPOINT=r:1",       "GITHUB_APP_ID=1",
                            "GITHUB_APP_PRIVATE_KEY=x", NULL };
    struct buf CLEANUP(buf_clear) faults = BUF_INIT(sizeof(text) - 1);
    struct config *c = NULL;
    enum err err = config_load(&c, DAEMON_REPORTER, environment, &faults);
    strcpy(text, err ? buf_str(&faults).ptr : "");
    if (!err)
        strcpy(value, config_text(c, name));
    config_free(c);
    return text;
}

static void the_path_that_is_added_is_left_out(void **state)
{
    (void)state;
    static const char *const bad[] = { "HUD_API_URL=https://h/crcr/results",
                                       "HUD_API_URL=https://h/api/crcr/results//",
                                       "HUD_API_URL=https://h/CRCR/Results/" };
    char value[200];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(strstr(said_of(bad[i], "HUD_API_URL", value),
                               "leave out /crcr/results, which is added to it"));
    assert_string_equal(said_of("HUD_API_URL=https://h/api/crcr/", "HUD_API_URL", value), "");
    assert_string_equal(value, "https://h/api/crcr");
    assert_string_equal(said_of("HUD_API_URL=https://crcr/results", "HUD_API_URL", value), "");
    assert_string_equal(said_of("HUD_API_URL=https://h", "HUD_API_URL", value), "");
}

static void a_query_or_fragment_is_refused_and_not_shown(void **state)
{
    (void)state;
    static const char *const bad[] = { "HUD_API_URL=https://h/hud?key=hush",
                                       "HUD_API_URL=https://h/hud#hush",
                                       "CRCR_GITHUB_API_URL=https://h/v3?hush",
                                       "CRCR_PUBLIC_URL=https://h/?hush" };
    char value[200];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *said = said_of(bad[i], NULL, value);
        assert_non_null(strstr(said, "a base URL has no query and no fragment"));
        assert_null(strstr(said, "hush"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_that_is_added_is_left_out),
        cmocka_unit_test(a_query_or_fragment_is_refused_and_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

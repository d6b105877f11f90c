/* Settings of PyTorch's relay that mean nothing here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/daemon/config.h"

static char *page(void)
{
    FILE *file = fopen(SOURCE_DIR "/deploy/FROM_PYTORCH.md", "r");
    char *text = calloc(1, 65536);
    assert_non_null(file);
    assert_true(fread(text, 1, 65535, file) > 1000);
    fclose(file);
    return text;
}

static void the_page_says_of_each_that_it_is_not_read(void **state)
{
    (void)state;
    char *text = page(), name[80];
    size_t n = 0;
    for (; config_of_pytorch[n]; n++) {
        snprintf(name, sizeof(name), "`%s`", config_of_pytorch[n]);
        char *at = strstr(text, name);
        assert_non_null(at);
        *strchr(at, '\n') = '\0';
        assert_non_null(strstr(at, "not read"));
        at[strlen(at)] = '\n';
        for (size_t i = 0; i < config_n_properties; i++)
            assert_string_not_equal(config_of_pytorch[n], config_properties[i].name);
    }
    assert_int_equal(n, 5);
    free(text);
}

static void those_that_are_set_are_found(void **state)
{
    (void)state;
    char *environment[] = {
        "PATH=/bin", "MAX_CLEANUP_WORKERS=4", "SECRET_STORE_ARN=", "OOT_STATUS_TTL=3", "X", NULL
    };
    char *none[] = { "HUD_API_URL=https://h", NULL };
    struct buf CLEANUP(buf_clear) to = BUF_INIT(1024);
    config_find_of_pytorch(environment, &to);
    assert_string_equal(buf_str(&to).ptr, "MAX_CLEANUP_WORKERS, OOT_STATUS_TTL");
    buf_reset(&to);
    config_find_of_pytorch(none, &to);
    assert_int_equal(to.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_says_of_each_that_it_is_not_read),
        cmocka_unit_test(those_that_are_set_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

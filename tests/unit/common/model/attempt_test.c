#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <cmocka.h>

#include "common/base/file.h"
#include "common/model/attempt.h"

/* Each line of the table is newer than those above; test_fold_run_lua.py holds the fold to it. */
static void attempts_have_one_order(void **state)
{
    (void)state;
    struct str line[64], rest;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(4096);
    struct why why = { "" };
    size_t n = 0;
    int fd = open(SOURCE_DIR "/tests/unit/common/model/attempt_order.txt", O_RDONLY);
    if (file_read(&text, fd, &why))
        fail_msg("%s", why.text);
    rest = buf_str(&text);
    while (n < 64 && str_split(&rest, '\n', &line[n]))
        n++;
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int order = attempt_compare(line[i], line[j]);
            if ((order > 0) - (order < 0) != (i > j) - (i < j))
                fail_msg("%.*s and %.*s: %d", STR_ARG(line[i]), STR_ARG(line[j]), order);
        }
    assert_int_equal(attempt_compare(STR_NONE, STR_LIT("")), 0);
}

static void a_number_that_github_cannot_mean_is_none(void **state)
{
    (void)state;
    assert_int_equal(attempt_number(STR_LIT("2")), 2);
    assert_int_equal(attempt_number(STR_LIT("2147483647")), INT32_MAX);
    assert_int_equal(attempt_number(STR_LIT("2147483648")), 0);
    assert_int_equal(attempt_number(STR_LIT("again")), 0);
    assert_int_equal(attempt_number(STR_NONE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_have_one_order),
        cmocka_unit_test(a_number_that_github_cannot_mean_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

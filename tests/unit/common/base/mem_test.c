#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"

static void blocks_are_zeroed_and_never_null(void **state)
{
    (void)state;
    char *block = mem_alloc(100, 3);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    block = mem_resize(block, 1000, 3);
    block[2999] = 1;
    free(mem_resize(block, 0, 3));
    free(mem_alloc(0, 8));
    free(mem_resize(NULL, 4, 4));
}

static void texts_are_copied(void **state)
{
    (void)state;
    char *copy = mem_dup("abc");
    assert_string_equal(copy, "abc");
    mem_free_char(&copy);
    assert_null(mem_dup(NULL));
}

/* The size is more than there can be: an overflow of n × size must not become a small block. */
static void no_memory_ends_the_process(void **state)
{
    (void)state;
    volatile size_t huge = SIZE_MAX / 2;
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        free(mem_resize(NULL, huge, 4));
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_never_null),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(no_memory_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a process does to itself: in a child of each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/daemon/daemon_private.h"

static int in_a_child(int (*does)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(does()); /* without LeakSanitizer, which could not attach */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int tracing(void)
{
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    process_refuse_tracing();
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && process_open_fds() > 2 &&
                   process_rss_bytes() > 0
               ? 0
               : 1;
}

static void nobody_may_attach_and_metrics_are_read_all_the_same(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(tracing), 0);
}

static int tracing_unprivileged(void)
{
    return setgid(65534) || setuid(65534) ? 0 : tracing();
}

static void a_process_without_rights_reads_its_metrics_too(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(tracing_unprivileged), 0);
}

static int cores(void)
{
    struct rlimit limit;
    process_refuse_cores();
    return getrlimit(RLIMIT_CORE, &limit) || limit.rlim_cur || limit.rlim_max;
}

static void no_core_is_written(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(cores), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_may_attach_and_metrics_are_read_all_the_same),
        cmocka_unit_test(a_process_without_rights_reads_its_metrics_too),
        cmocka_unit_test(no_core_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

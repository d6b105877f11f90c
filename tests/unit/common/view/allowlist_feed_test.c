#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>

#include "common/view/allowlist_feed.h"

/* What was never opened must not be closed: it would be somebody else's descriptor 0. */
static void a_start_that_fails_closes_nothing_of_others(void **state)
{
    struct rlimit before;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (fcntl(0, F_GETFD) < 0)
        assert_int_equal(open("/dev/null", O_RDONLY), 0);
    const struct kafka_options kafka = { .brokers = "127.0.0.1:1", .client_id = "test" };
    struct allowlist_feed *feed = NULL;
    struct why why = { "" };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
    enum err err = allowlist_feed_new(&feed, &kafka, "allowlist", NULL, &why);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, ERR_STOP);
    assert_null(feed);
    assert_true(fcntl(0, F_GETFD) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_that_fails_closes_nothing_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

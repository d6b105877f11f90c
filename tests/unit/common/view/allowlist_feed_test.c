#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/wake.h"
#include "common/view/allowlist_feed.h"

enum { TURN_MAX_MS = 20000 };

static struct wake answered; /* by the name server */

/* In front of libc's, for librdkafka. */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)node, (void)service, (void)hints, (void)ret;
    wake_wait(&answered, -1);
    return EAI_AGAIN;
}

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
    atomic_llong alive_ms = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
    enum err err = allowlist_feed_new(&feed, &kafka, "allowlist", NULL, &alive_ms, &why);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, ERR_STOP);
    assert_null(feed);
    assert_true(fcntl(0, F_GETFD) >= 0);
}

static void refused(const struct why *why)
{
    (void)why;
}

/* A Kafka that is unavailable is no reason to restart a daemon, however long the name server takes.
 */
static void its_thread_shows_that_it_lives_while_no_name_server_answers(void **state)
{
    (void)state;
    const struct kafka_options kafka = { .brokers = "kafka.example:9092", .client_id = "test" };
    struct allowlist_feed *feed = NULL;
    struct wake wake;
    struct why why;
    atomic_llong alive_ms = 0;
    assert_int_equal(wake_init(&wake, &why), OK);
    assert_int_equal(wake_init(&answered, &why), OK);
    assert_int_equal(allowlist_feed_new(&feed, &kafka, "allowlist", refused, &alive_ms, &why), OK);
    for (int turn = 0; turn < 2; turn++) {
        int64_t began_ms = clock_mono_ms();
        while (atomic_load(&alive_ms) <= began_ms && clock_mono_ms() < began_ms + TURN_MAX_MS)
            wake_wait(&wake, 20);
        assert_true(atomic_load(&alive_ms) > began_ms);
    }
    assert_false(allowlist_feed_caught_up(feed));
    wake_up(&answered);
    allowlist_feed_free(feed);
    wake_clear(&answered);
    wake_clear(&wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_that_fails_closes_nothing_of_others),
        cmocka_unit_test(its_thread_shows_that_it_lives_while_no_name_server_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

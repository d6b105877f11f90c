/* What needs no broker; the rest: tests/integration/topic_writer_live.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <stdio.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/io/topic_writer.h"
#include "tcp_fixture.h"

#define LIMIT_MS 20000

/* TCP's user timeout on a connection of such a writer. */
static int user_timeout_of(int message_timeout_ms)
{
    char brokers[32];
    int port, fd = tcp_listen_slow(&port), user_timeout_ms;
    int64_t until_ms = clock_mono_ms() + LIMIT_MS;
    struct topic_writer *w;
    struct why why;
    snprintf(brokers, sizeof(brokers), "127.0.0.1:%d", port);
    const struct topic_writer_options options = { .kafka = { .brokers = brokers },
                                                  .message_timeout_ms = message_timeout_ms };
    assert_int_equal(topic_writer_new(&w, &options, &why), OK);
    while ((user_timeout_ms = tcp_user_timeout_to(port)) < 0 && clock_mono_ms() < until_ms)
        poll(NULL, 0, 10);
    topic_writer_free(w);
    close(fd);
    return user_timeout_ms;
}

static void a_time_that_is_given_is_also_tcps(void **state)
{
    (void)state;
    assert_int_equal(user_timeout_of(1500), 1500);
}

static void without_one_tcp_keeps_the_kernels(void **state)
{
    (void)state;
    assert_int_equal(user_timeout_of(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_is_given_is_also_tcps),
        cmocka_unit_test(without_one_tcp_keeps_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

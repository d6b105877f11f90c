/* What needs no broker; the rest is tested where a client is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <sys/prctl.h>

#include "common/io/topic_client.h"

/* By rd_kafka_thread_type_t; written by the threads. */
static atomic_int slack_ns[3];

static rd_kafka_resp_err_t on_thread_exit(rd_kafka_t *rk, rd_kafka_thread_type_t type,
                                          const char *name, void *opaque)
{
    (void)rk, (void)name, (void)opaque;
    atomic_store(&slack_ns[type], prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque,
                                  char *text, size_t size)
{
    (void)conf, (void)opaque, (void)text, (void)size;
    return rd_kafka_interceptor_add_on_thread_exit(rk, "test", on_thread_exit, NULL);
}

/* Of a copy, as a writer has them. */
static void only_timers_of_the_main_thread_may_be_late(void **state)
{
    static const struct kafka_options options = { .brokers = "127.0.0.1:1" };
    static const topic_setting none[] = { { NULL, NULL } };
    struct topic_client client = { 0 };
    rd_kafka_conf_t *conf;
    struct why why;

    (void)state;
    assert_int_equal(topic_client_configure(&client, &options, none, none, &conf, &why), OK);
    rd_kafka_conf_t *copy = rd_kafka_conf_dup(conf);
    rd_kafka_conf_destroy(conf);
    rd_kafka_conf_interceptor_add_on_new(copy, "test", on_new, NULL);
    assert_int_equal(topic_client_open(&client, true, copy, &why), OK);
    topic_client_clear(&client);
    assert_int_equal(atomic_load(&slack_ns[RD_KAFKA_THREAD_MAIN]), 1000000);
    assert_int_equal(atomic_load(&slack_ns[RD_KAFKA_THREAD_BROKER]), 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_timers_of_the_main_thread_may_be_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What needs a broker that is unavailable; the rest: tests/integration/test_topics.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_admin.h"

#define GROUP      "readers"
#define TIMEOUT_MS 3000
#define LIMIT_MS   20000

static void commit(const struct brokers *b, int64_t offset)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    rd_kafka_conf_set(conf, "bootstrap.servers", b->addresses, NULL, 0);
    rd_kafka_conf_set(conf, "group.id", GROUP, NULL, 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    rd_kafka_topic_partition_list_add(list, BROKER_TOPIC, 0)->offset = offset;
    assert_int_equal(rd_kafka_commit(rk, list, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
}

static enum err lag_of(struct topic_admin *a, int64_t *lag, struct why *why)
{
    const char *topic = BROKER_TOPIC, *groups[] = { "nobody", GROUP };
    struct partition_lag *lags;
    size_t n;
    enum err err = topic_admin_lag(a, groups, 2, &topic, 1, &lags, &n, why);

    if (err)
        return err;
    assert_int_equal(n, 1);
    assert_int_equal(lags[0].committed, -1);
    assert_int_equal(lags[0].lag, lags[0].end);
    *lag = lags[1].lag;
    free(lags);
    return OK;
}

static struct topic_admin *admin_of(const struct brokers *b)
{
    const struct kafka_options kafka = { .brokers = b->addresses };
    struct topic_admin *a;
    struct why why;

    assert_int_equal(topic_admin_new(&a, &kafka, TIMEOUT_MS, &why), OK);
    return a;
}

static void a_leader_that_is_unavailable_is_waited_for_for_a_time_only(void **state)
{
    struct why why;
    int64_t lag = -1, deadline;

    (void)state;
    struct brokers b = brokers_begin(2);
    rd_kafka_mock_coordinator_set(b.cluster, "group", GROUP, 1);
    rd_kafka_mock_coordinator_set(b.cluster, "group", "nobody", 1);
    rd_kafka_mock_partition_set_leader(b.cluster, BROKER_TOPIC, 0, 2);
    rd_kafka_mock_broker_set_down(b.cluster, 2);
    struct topic_admin *a = admin_of(&b);

    int64_t began_ms = clock_mono_ms();
    assert_int_equal(lag_of(a, &lag, &why), ERR_RETRY);
    assert_in_range(clock_mono_ms() - began_ms, 1, 5 * TIMEOUT_MS);
    assert_non_null(strstr(why.text, "partitions of " BROKER_TOPIC ": "));
    rd_kafka_mock_broker_set_up(b.cluster, 2);
    deadline = clock_mono_ms() + LIMIT_MS;
    while (lag_of(a, &lag, &why))
        assert_true(clock_mono_ms() < deadline);
    assert_int_equal(lag, 0);
    topic_admin_free(a);
    brokers_end(&b);
}

static void of_a_topic_made_anew_all_is_waiting(void **state)
{
    struct why why;
    int64_t lag = -1;

    (void)state;
    struct brokers b = brokers_begin(1);
    struct topic_admin *a = admin_of(&b);
    brokers_write(&b, 3);

    commit(&b, 2);
    assert_int_equal(lag_of(a, &lag, &why), OK);
    assert_int_equal(lag, 1);
    commit(&b, 3);
    assert_int_equal(lag_of(a, &lag, &why), OK);
    assert_int_equal(lag, 0);
    commit(&b, 100); /* of the topic that was there before */
    assert_int_equal(lag_of(a, &lag, &why), OK);
    assert_int_equal(lag, 3);
    topic_admin_free(a);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_is_unavailable_is_waited_for_for_a_time_only),
        cmocka_unit_test(of_a_topic_made_anew_all_is_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What needs a broker that is away; the rest: tests/integration/test_topic_span.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/io/topic_span.h"

#define TOPIC    "events"
#define LIMIT_MS 20000

static void a_leader_that_is_away_is_waited_for_for_a_time_only(void **state)
{
    char reason[256];
    struct topic_span *span;
    struct why why;

    (void)state;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", "", NULL, 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 2);
    rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1);
    rd_kafka_mock_partition_set_leader(cluster, TOPIC, 0, 2);
    rd_kafka_mock_broker_set_down(cluster, 2);
    const struct kafka_options kafka = { .brokers = rd_kafka_mock_cluster_bootstraps(cluster) };
    const struct topic_span_part part = { .topic = TOPIC };
    int64_t began_ms = clock_mono_ms();

    assert_int_equal(topic_span_new(&span, &kafka, &part, 1, &why), ERR_RETRY);
    assert_in_range(clock_mono_ms() - began_ms, 1, LIMIT_MS);
    rd_kafka_mock_broker_set_up(cluster, 2);
    assert_int_equal(topic_span_new(&span, &kafka, &part, 1, &why), OK);
    assert_int_equal(topic_span_total(span), 0);
    topic_span_free(span);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(rk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_is_away_is_waited_for_for_a_time_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

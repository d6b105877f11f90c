/* What needs a broker that is unavailable; the rest: tests/integration/test_topic_span.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_follower.h"

#define LIMIT_MS 20000

static void a_leader_that_is_unavailable_is_waited_for_for_a_time_only(void **state)
{
    struct topic_follower *span = NULL;
    struct why why;

    (void)state;
    struct brokers b = brokers_begin(2);
    rd_kafka_mock_partition_set_leader(b.cluster, BROKER_TOPIC, 0, 2);
    rd_kafka_mock_broker_set_down(b.cluster, 2);
    const char *topic = BROKER_TOPIC;
    const struct topic_follower_options options = {
        .kafka = { .brokers = b.addresses }, .topics = &topic, .n_topics = 1, .to_ends = true
    };
    int64_t began_ms = clock_mono_ms();

    assert_int_equal(topic_follower_start(&span, &options, &why), ERR_RETRY);
    assert_in_range(clock_mono_ms() - began_ms, 1, LIMIT_MS);
    rd_kafka_mock_broker_set_up(b.cluster, 2);
    assert_int_equal(topic_follower_start(&span, &options, &why), OK);
    assert_int_equal(topic_follower_seen(span).total, 0);
    topic_follower_free(span);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_is_unavailable_is_waited_for_for_a_time_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

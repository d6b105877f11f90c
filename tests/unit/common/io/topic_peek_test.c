#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_peek.h"

#define PLACES 4

static int64_t seen[PLACES]; /* the offset that was found for each; -1: none was */

static void found(void *opaque, size_t i, const struct record *record)
{
    (void)opaque;
    assert_int_equal(seen[i], -1);
    seen[i] = record->at.offset;
}

static struct topic_peek *peek_of(const struct brokers *b)
{
    const struct kafka_options kafka = { .brokers = b->addresses };
    struct topic_peek *p;
    struct why why;
    assert_int_equal(topic_peek_new(&p, &kafka, &why), OK);
    memset(seen, -1, sizeof(seen));
    return p;
}

static void several_places_of_a_partition_are_read_and_its_end_has_nothing(void **state)
{
    (void)state;
    const struct topic_position at[PLACES] = { { BROKER_TOPIC, 0, 1 },
                                               { BROKER_TOPIC, 0, 4 },
                                               { BROKER_TOPIC, 0, 5 },
                                               { BROKER_TOPIC, 0, 1 } };
    struct why why;
    struct brokers b = brokers_begin(1);
    brokers_write(&b, 5);
    struct topic_peek *p = peek_of(&b);
    for (int turn = 0; turn < 2; turn++) {
        memset(seen, -1, sizeof(seen));
        assert_int_equal(topic_peek_read(p, at, PLACES, 20000, found, NULL, &why), OK);
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], 4);
        assert_int_equal(seen[2], -1);
        assert_int_equal(seen[3], 1);
    }
    assert_int_equal(topic_peek_read(p, at, 0, 20000, found, NULL, &why), OK);
    topic_peek_free(p);
    brokers_end(&b);
}

static void a_leader_that_is_unavailable_costs_no_more_than_the_time(void **state)
{
    (void)state;
    const struct topic_position at = { BROKER_TOPIC, 0, 0 };
    struct why why;
    struct brokers b = brokers_begin(1);
    brokers_write(&b, 1);
    rd_kafka_mock_broker_set_down(b.cluster, 1);
    struct topic_peek *p = peek_of(&b);
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(topic_peek_read(p, &at, 1, 500, found, NULL, &why), ERR_RETRY);
    assert_in_range(clock_mono_ms() - began_ms, 500, 10000);
    assert_non_null(strstr(why.text, "cannot reach Kafka"));
    rd_kafka_mock_broker_set_up(b.cluster, 1);
    assert_int_equal(topic_peek_read(p, &at, 1, 20000, found, NULL, &why), OK);
    assert_int_equal(seen[0], 0);
    topic_peek_free(p);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_places_of_a_partition_are_read_and_its_end_has_nothing),
        cmocka_unit_test(a_leader_that_is_unavailable_costs_no_more_than_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

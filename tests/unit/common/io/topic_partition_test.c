/* Records are those of a broker in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/io/topic_partition.h"

#define N_RECORDS 4
#define WAIT_MS   20000

struct broker {
    struct brokers brokers;
    rd_kafka_t *reader;
};

static int setup(void **state)
{
    struct broker *b = calloc(1, sizeof(*b));

    b->brokers = brokers_begin(1);
    brokers_write(&b->brokers, N_RECORDS);
    b->reader = brokers_client(RD_KAFKA_CONSUMER, b->brokers.addresses);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct broker *b = *state;

    rd_kafka_destroy(b->reader);
    brokers_end(&b->brokers);
    free(b);
    return 0;
}

static struct record *take(const struct broker *b, struct topic_partition *p, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, BROKER_TOPIC, 0)->offset = offset;
    rd_kafka_assign(b->reader, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_message_t *message = rd_kafka_consumer_poll(b->reader, WAIT_MS);
    assert_non_null(message);
    assert_int_equal(message->err, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(message->offset, offset);
    return &topic_partition_take(p, message)->record;
}

static void what_is_in_hand_below_stays_when_offsets_go_back(void **state)
{
    const struct broker *b = *state;
    struct topic_partition *p = topic_partition_new(BROKER_TOPIC, 0);
    struct record *first = take(b, p, 0);

    record_done(take(b, p, 1));
    struct record *before = take(b, p, 2);
    record_done(take(b, p, 3));
    struct record *again = take(b, p, 2);
    assert_int_equal(p->n_held, 2);
    assert_int_equal(topic_partition_due(p), 0); /* or a crash would lose the first */
    record_done(first);
    assert_int_equal(topic_partition_due(p), 2);
    record_done(before); /* belongs to nobody */
    assert_int_equal(topic_partition_due(p), 2);
    record_done(again);
    assert_int_equal(topic_partition_due(p), 3);
    assert_int_equal(p->held_bytes, 0);
    topic_partition_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_in_hand_below_stays_when_offsets_go_back, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

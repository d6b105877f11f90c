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

#define PLACES 4

static int64_t seen[PLACES]; /* the offset that was found for each; -1: none was */

static void found(const struct record *record)
{
    int64_t *place = record->user;
    assert_int_equal(*place, -1);
    *place = record->at.offset;
}

static struct topic_admin *admin_of(const struct brokers *b)
{
    const struct kafka_options kafka = { .brokers = b->addresses };
    struct topic_admin *a;
    struct why why;
    assert_int_equal(topic_admin_new(&a, &kafka, 1000, &why), OK);
    memset(seen, -1, sizeof(seen));
    return a;
}

static void several_places_of_a_partition_are_read_and_its_end_has_nothing(void **state)
{
    (void)state;
    const struct topic_want wants[PLACES] = { { { BROKER_TOPIC, 0, 1 }, &seen[0] },
                                              { { BROKER_TOPIC, 0, 4 }, &seen[1] },
                                              { { BROKER_TOPIC, 0, 5 }, &seen[2] },
                                              { { BROKER_TOPIC, 0, 1 }, &seen[3] } };
    struct why why;
    struct brokers b = brokers_begin(1);
    brokers_write(&b, 5);
    struct topic_admin *a = admin_of(&b);
    for (int turn = 0; turn < 2; turn++) {
        memset(seen, -1, sizeof(seen));
        assert_int_equal(topic_admin_read(a, wants, PLACES, 20000, found, &why), OK);
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], 4);
        assert_int_equal(seen[2], -1);
        assert_int_equal(seen[3], 1);
    }
    assert_int_equal(topic_admin_read(a, wants, 0, 20000, found, &why), OK);
    topic_admin_free(a);
    brokers_end(&b);
}

/* librdkafka has fetched more than was wanted, and ends the process where it meets that in the
 * wrong queue. */
static void other_questions_may_come_in_between(void **state)
{
    (void)state;
    const struct topic_want want = { { BROKER_TOPIC, 0, 1 }, &seen[0] };
    const char *group = "some-group", *topic = BROKER_TOPIC;
    struct partition_lag *lags;
    struct why why;
    size_t n;
    struct brokers b = brokers_begin(1);
    brokers_write(&b, 500);
    struct topic_admin *a = admin_of(&b);
    for (int turn = 0; turn < 20; turn++) {
        memset(seen, -1, sizeof(seen));
        assert_int_equal(topic_admin_read(a, &want, 1, 20000, found, &why), OK);
        assert_int_equal(seen[0], 1);
        assert_int_equal(topic_admin_lag(a, &group, 1, &topic, 1, &lags, &n, &why), OK);
        assert_int_equal(lags[0].end, 500);
        free(lags);
    }
    topic_admin_free(a);
    brokers_end(&b);
}

static void a_leader_that_is_unavailable_costs_no_more_than_the_time(void **state)
{
    (void)state;
    const struct topic_want want = { { BROKER_TOPIC, 0, 0 }, &seen[0] };
    struct why why;
    struct brokers b = brokers_begin(1);
    brokers_write(&b, 1);
    rd_kafka_mock_broker_set_down(b.cluster, 1);
    struct topic_admin *a = admin_of(&b);
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(topic_admin_read(a, &want, 1, 500, found, &why), ERR_RETRY);
    assert_in_range(clock_mono_ms() - began_ms, 500, 10000);
    assert_non_null(strstr(why.text, "cannot reach Kafka"));
    rd_kafka_mock_broker_set_up(b.cluster, 1);
    assert_int_equal(topic_admin_read(a, &want, 1, 20000, found, &why), OK);
    assert_int_equal(seen[0], 0);
    topic_admin_free(a);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_places_of_a_partition_are_read_and_its_end_has_nothing),
        cmocka_unit_test(other_questions_may_come_in_between),
        cmocka_unit_test(a_leader_that_is_unavailable_costs_no_more_than_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

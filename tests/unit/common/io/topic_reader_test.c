/* What needs a broker that is unavailable; the rest: tests/integration/topic_reader_live.c. */
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
#include "common/io/topic_admin.h"
#include "common/io/topic_reader.h"

#define AWAY_TOPIC "away" /* its leader is */
#define GROUP      "readers"
#define LIMIT_MS   20000
#define MINUTE_MS  60000
#define RESET_MS   500  /* until librdkafka has noticed */
#define HELD_MS    3000 /* of the session's 6 s */

static struct topic_reader *reader_of_both(const struct brokers *b)
{
    static const char *const topics[] = { BROKER_TOPIC, AWAY_TOPIC };
    const struct topic_reader_options options = {
        .kafka = { .brokers = b->addresses }, .group = GROUP, .topics = topics, .n_topics = 2
    };
    struct topic_reader *r;
    struct why why;
    int64_t deadline = clock_mono_ms() + LIMIT_MS;

    assert_int_equal(topic_reader_new(&r, &options, &why), OK);
    while (topic_reader_assigned(r) != 2 || topic_reader_state(r).lag < 0) {
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    return r;
}

static struct brokers with_one_away(void)
{
    struct brokers b = brokers_begin(2);

    rd_kafka_mock_coordinator_set(b.cluster, "group", GROUP, 1);
    assert_int_equal(rd_kafka_mock_topic_create(b.cluster, AWAY_TOPIC, 1, 1), 0);
    rd_kafka_mock_partition_set_leader(b.cluster, AWAY_TOPIC, 0, 2);
    rd_kafka_mock_broker_set_down(b.cluster, 2);
    return b;
}

static void what_is_unread_hides_no_lag(void **state)
{
    struct topic_reader *r;
    struct record *record;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = with_one_away();
    r = reader_of_both(&b);
    brokers_write(&b, 1);
    while (!(record = topic_reader_next(r, 10)))
        assert_true(clock_mono_ms() < deadline);
    assert_int_equal(topic_reader_state(r).lag, 1);
    record_done(record);
    assert_int_equal(topic_reader_state(r).lag, 0);
    topic_reader_free(r);
    brokers_end(&b);
}

/* What the watchdog goes by. */
static void an_idle_partition_says_how_far_it_was_read(void **state)
{
    struct topic_reader *r;
    struct topic_idle idle[2];
    struct record *record;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = with_one_away();
    r = reader_of_both(&b);
    brokers_write(&b, 1);
    while (!(record = topic_reader_next(r, 10)))
        assert_true(clock_mono_ms() < deadline);
    assert_int_equal(topic_reader_idle(r, idle, 2), 1); /* the other has a record in hand */
    assert_string_equal(idle[0].at.topic, AWAY_TOPIC);
    assert_int_equal(idle[0].at.offset, -1);
    int64_t since_ms = idle[0].since_ms;
    topic_reader_pause(r, true);
    assert_int_equal(topic_reader_idle(r, idle, 2), 0); /* on purpose */
    topic_reader_pause(r, false);
    assert_int_equal(topic_reader_idle(r, idle, 2), 1);
    assert_true(idle[0].since_ms >= since_ms);
    record_done(record);
    assert_int_equal(topic_reader_idle(r, idle, 2), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(idle[i].at.offset, strcmp(idle[i].at.topic, AWAY_TOPIC) ? 1 : -1);
    topic_reader_free(r);
    brokers_end(&b);
}

static void whether_there_is_more_is_asked_of_the_leaders(void **state)
{
    const struct topic_position at[] = { { BROKER_TOPIC, 0, 1 }, { AWAY_TOPIC, 0, -1 } };
    const struct topic_position unread = { BROKER_TOPIC, 0, 0 };
    struct topic_admin *admin;
    ptrdiff_t behind;
    struct why why;

    (void)state;
    struct brokers b = with_one_away();
    const struct kafka_options kafka = { .brokers = b.addresses };
    brokers_write(&b, 1);
    assert_int_equal(topic_admin_new(&admin, &kafka, 1000, &why), OK);
    assert_int_equal(topic_admin_behind(admin, at, 1, &behind, &why), OK);
    assert_int_equal(behind, -1);
    assert_int_equal(topic_admin_behind(admin, &unread, 1, &behind, &why), OK);
    assert_int_equal(behind, 0);
    assert_int_equal(topic_admin_behind(admin, at, 2, &behind, &why), ERR_RETRY);
    rd_kafka_mock_broker_set_up(b.cluster, 2);
    int64_t deadline = clock_mono_ms() + LIMIT_MS;
    while (topic_admin_behind(admin, at, 2, &behind, &why))
        assert_true(clock_mono_ms() < deadline);
    assert_int_equal(behind, 1); /* empty, but its end was never heard */
    topic_admin_free(admin);
    brokers_end(&b);
}

/* A heartbeat is on its way when the coordinator's connection is reset. */
static void an_answer_that_did_not_come_prolongs_no_session(void **state)
{
    static const char *const topics[] = { BROKER_TOPIC };
    struct topic_reader *r;
    struct why why;
    int64_t deadline = clock_mono_ms() + LIMIT_MS;

    (void)state;
    struct brokers b = brokers_begin(1);
    const struct topic_reader_options options = {
        .kafka = { .brokers = b.addresses }, .group = GROUP, .topics = topics, .n_topics = 1
    };
    assert_int_equal(topic_reader_new(&r, &options, &why), OK);
    while (topic_reader_assigned(r) != 1) {
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    rd_kafka_mock_broker_set_rtt(b.cluster, 1, MINUTE_MS);
    while (topic_reader_holds(r, HELD_MS)) { /* the next heartbeat was sent 1.5 s after the last */
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    rd_kafka_mock_broker_set_down(b.cluster, 1);
    for (int64_t end = clock_mono_ms() + RESET_MS; clock_mono_ms() < end;) {
        assert_null(topic_reader_next(r, 10));
        assert_false(topic_reader_holds(r, HELD_MS));
    }
    topic_reader_free(r);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_unread_hides_no_lag),
        cmocka_unit_test(an_answer_that_did_not_come_prolongs_no_session),
        cmocka_unit_test(an_idle_partition_says_how_far_it_was_read),
        cmocka_unit_test(whether_there_is_more_is_asked_of_the_leaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What needs a broker that is away; the rest: tests/integration/topic_reader_live.c. */
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
#include "common/io/topic_standing.h"

#define AWAY_TOPIC "away" /* its leader is */
#define GROUP      "readers"
#define LIMIT_MS   20000
#define MINUTE_MS  60000
#define RESET_MS   500 /* until librdkafka has noticed */

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
    while (topic_reader_assigned(r) != 2 || topic_reader_lag(r) < 0) {
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
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = with_one_away();
    r = reader_of_both(&b);
    brokers_write(&b, 1);
    while (!(record = topic_reader_next(r, 10)))
        assert_true(clock_mono_ms() < deadline);
    assert_int_equal(topic_reader_lag(r), 1);
    assert_int_equal(topic_reader_share(r).unread, 1);
    assert_true(topic_reader_share(r).unread_ms > 0);
    assert_int_equal(topic_reader_judge_unread(r, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, AWAY_TOPIC " [0]; last error: "));
    assert_null(strstr(why.text, "none"));

    topic_reader_pause(r, true);
    assert_int_equal(topic_reader_share(r).unread, 0); /* on purpose */
    topic_reader_pause(r, false);
    assert_int_equal(topic_reader_share(r).unread, 1);

    rd_kafka_mock_broker_set_up(b.cluster, 2);
    while (topic_reader_share(r).unread) {
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    assert_int_equal(topic_reader_share(r).unread_ms, 0);
    assert_int_equal(topic_reader_judge_unread(r, &why), OK);
    record_done(record);
    assert_int_equal(topic_reader_lag(r), 0);
    topic_reader_free(r);
    brokers_end(&b);
}

/* Each second, as topic_reader_next does. */
static void look(struct topic_reader *r, int64_t from_ms, int64_t to_ms)
{
    for (int64_t now_ms = from_ms; now_ms < to_ms; now_ms += 1000)
        topic_standing_look(r, now_ms);
    topic_standing_look(r, to_ms);
}

static void who_did_not_look_meanwhile_begins_the_minute_anew(void **state)
{
    (void)state;
    struct brokers b = with_one_away();
    struct topic_reader *r = reader_of_both(&b);
    struct topic_partition *away = topic_reader_find(r, AWAY_TOPIC, 0);
    int64_t now_ms = clock_mono_ms() + 2 * MINUTE_MS;

    look(r, now_ms, now_ms + MINUTE_MS - 1);
    assert_false(away->standing);
    look(r, now_ms + MINUTE_MS, now_ms + MINUTE_MS);
    assert_true(away->standing);
    topic_reader_free(r);
    brokers_end(&b);
}

static void a_pause_does_not_count(void **state)
{
    (void)state;
    struct topic_partition *p = topic_partition_new(BROKER_TOPIC, 0);
    int64_t asked_ms = p->asked_ms, anew_ms = p->anew_ms;

    topic_standing_paused(p, true, asked_ms + 10);
    topic_standing_paused(p, false, asked_ms + 1010);
    assert_int_equal(p->asked_ms, asked_ms + 1000);
    assert_int_equal(p->anew_ms, anew_ms + 1000);
    topic_partition_free(p);
}

static void what_is_unread_for_a_minute_is_assigned_anew_and_then_ever_more_rarely(void **state)
{
    (void)state;
    struct brokers b = with_one_away();
    struct topic_reader *r = reader_of_both(&b);
    struct topic_partition *away = topic_reader_find(r, AWAY_TOPIC, 0);
    int64_t asked_ms = away->asked_ms, now_ms = clock_mono_ms();

    look(r, now_ms, now_ms);
    now_ms = away->anew_ms;
    look(r, now_ms, now_ms + MINUTE_MS - 1);
    assert_false(away->standing);
    look(r, now_ms + MINUTE_MS, now_ms + MINUTE_MS);
    assert_true(away->standing);
    assert_false(topic_reader_find(r, BROKER_TOPIC, 0)->standing);
    now_ms += MINUTE_MS + 1000;
    topic_standing_restart(r, now_ms);
    assert_false(away->standing);
    look(r, now_ms, now_ms + 2 * MINUTE_MS - 1);
    assert_false(away->standing);
    look(r, now_ms + 2 * MINUTE_MS, now_ms + 2 * MINUTE_MS);
    assert_true(away->standing);
    assert_int_equal(away->asked_ms, asked_ms); /* unread since then */

    rd_kafka_mock_broker_set_up(b.cluster, 2);
    int64_t deadline = clock_mono_ms() + LIMIT_MS;
    while (topic_reader_share(r).unread) {
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    topic_reader_free(r);
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
    while (atomic_load(&r->joining.asked_ms) <= atomic_load(&r->joining.known_ms)) {
        assert_null(topic_reader_next(r, 10));
        assert_true(clock_mono_ms() < deadline);
    }
    int64_t known_ms = atomic_load(&r->joining.known_ms);
    rd_kafka_mock_broker_set_down(b.cluster, 1);
    for (int64_t end = clock_mono_ms() + RESET_MS; clock_mono_ms() < end;)
        assert_null(topic_reader_next(r, 10));
    assert_int_equal(atomic_load(&r->joining.known_ms), known_ms);
    topic_reader_free(r);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_unread_hides_no_lag),
        cmocka_unit_test(an_answer_that_did_not_come_prolongs_no_session),
        cmocka_unit_test(a_pause_does_not_count),
        cmocka_unit_test(who_did_not_look_meanwhile_begins_the_minute_anew),
        cmocka_unit_test(what_is_unread_for_a_minute_is_assigned_anew_and_then_ever_more_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

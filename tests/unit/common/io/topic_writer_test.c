/* What needs no real broker; the rest: tests/integration/topic_writer_live.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_writer.c" /* its inside is looked at */
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

/* One that knows the broker. */
static struct topic_writer *broker_writer(const struct brokers *b, bool lingers)
{
    const struct topic_writer_options options = { .kafka = { .brokers = b->addresses },
                                                  .lingers = lingers };
    struct topic_writer *w;
    struct why why;

    assert_int_equal(topic_writer_new(&w, &options, &why), OK);
    assert_int_equal(topic_writer_check(w, (const char *[]){ BROKER_TOPIC }, 1, LIMIT_MS, &why),
                     OK);
    return w;
}

/* ---- what librdkafka takes for stored ---- */

enum { PRODUCE = 0, ROUND_TRIP_MS = 200, N_RECORDS = 3 };

struct reported {
    int n;
    enum err err;
    char reason[128];
};

static void on_written(void *opaque, enum err err, const struct topic_position *at,
                       const char *reason)
{
    struct reported *reports = opaque;

    (void)at;
    reports->n++;
    reports->err = err;
    snprintf(reports->reason, sizeof(reports->reason), "%s", reason ? reason : "");
}

static int64_t stored_at(const struct brokers *b)
{
    int64_t low, high;
    rd_kafka_t *reader = brokers_client(RD_KAFKA_CONSUMER, b->addresses);

    assert_int_equal(
        rd_kafka_query_watermark_offsets(reader, BROKER_TOPIC, 0, &low, &high, LIMIT_MS),
        RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(reader);
    return high - low;
}

/* Each is a request of its own, under way when the first is refused. */
static void put_one_by_one(struct topic_writer *w, struct reported reports[N_RECORDS])
{
    struct headers headers;
    struct why why;

    headers_init(&headers);
    for (int i = 0; i < N_RECORDS; i++) {
        assert_int_equal(topic_writer_put(w,
                                          &(struct new_record){ .topic = BROKER_TOPIC,
                                                                .key = STR_LIT("key"),
                                                                .value = STR_LIT("value"),
                                                                .headers = &headers },
                                          on_written, &reports[i], &why),
                         OK);
        poll(NULL, 0, ROUND_TRIP_MS / 4);
    }
    assert_int_equal(topic_writer_flush(w, LIMIT_MS, &why), OK);
}

/* The brokers in memory take any sequence number, as real ones do of a producer that is new to
 * them. */
static void what_was_refused_is_not_stored_because_a_later_record_is(void **state)
{
    struct reported reports[N_RECORDS] = { 0 };
    int64_t n_ok = 0;

    (void)state;
    struct brokers b = brokers_begin(1);
    struct topic_writer *w = broker_writer(&b, false);
    rd_kafka_mock_broker_set_rtt(b.cluster, 1, ROUND_TRIP_MS);
    rd_kafka_mock_broker_push_request_error_rtts(
        b.cluster, 1, PRODUCE, 1, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, ROUND_TRIP_MS);

    put_one_by_one(w, reports);

    for (int i = 0; i < N_RECORDS; i++) {
        assert_int_equal(reports[i].n, 1);
        n_ok += !reports[i].err;
        if (reports[i].err) {
            assert_int_equal(reports[i].err, ERR_UNKNOWN);
            assert_non_null(strstr(reports[i].reason, "a later record of its partition is"));
        }
    }
    assert_int_equal(n_ok, stored_at(&b));
    topic_writer_free(w);
    brokers_end(&b);
}

/* It may stick to a broker that no longer leads a partition. Records that time out now and then are
 * no reason. */
static void a_producer_whose_records_time_out_for_half_a_minute_is_replaced(void **state)
{
    struct brokers b = brokers_begin(1);
    struct topic_writer *w = broker_writer(&b, false);
    const void *first = w->client.rk;
    (void)state;
    for (int64_t at_ms = 1000; at_ms <= 200000; at_ms += 20000) /* too far apart */
        note_late(w, at_ms);
    topic_writer_poll(w, 0);
    assert_ptr_equal(w->client.rk, first);
    for (int64_t at_ms = 300000; at_ms <= 329000; at_ms += 8000)
        note_late(w, at_ms);
    topic_writer_poll(w, 0);
    assert_ptr_equal(w->client.rk, first);
    note_late(w, 331000);
    topic_writer_poll(w, 0);
    assert_ptr_not_equal(w->client.rk, first);
    assert_false(topic_writer_fatal(w, NULL));
    struct reported reports[N_RECORDS] = { 0 };
    put_one_by_one(w, reports); /* it works */
    topic_writer_free(w);
    brokers_end(&b);
}

/* ---- how long a record waits for others ---- */

/* The shortest of some times from a record to its report. */
static int64_t shortest_us(bool lingers)
{
    int64_t shortest = INT64_MAX;
    struct why why;

    struct brokers b = brokers_begin(1);
    struct topic_writer *w = broker_writer(&b, lingers);
    for (int i = 0; i < 20; i++) {
        struct reported reports = { 0 };
        int64_t begun_us = clock_mono_us();
        assert_int_equal(topic_writer_put(w,
                                          &(struct new_record){ .topic = BROKER_TOPIC,
                                                                .key = STR_LIT("key"),
                                                                .value = STR_LIT("value") },
                                          on_written, &reports, &why),
                         OK);
        while (!reports.n)
            topic_writer_poll(w, LIMIT_MS);
        assert_int_equal(reports.err, OK);
        int64_t us = clock_mono_us() - begun_us;
        if (us < shortest)
            shortest = us;
    }
    topic_writer_free(w);
    brokers_end(&b);
    return shortest;
}

static void a_record_that_somebody_waits_for_goes_at_once(void **state)
{
    (void)state;
    assert_in_range(shortest_us(false), 0, 4000);
}

static void a_record_that_nobody_waits_for_waits_for_others(void **state)
{
    (void)state;
    assert_in_range(shortest_us(true), 4500, 1000 * LIMIT_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_is_given_is_also_tcps),
        cmocka_unit_test(without_one_tcp_keeps_the_kernels),
        cmocka_unit_test(a_record_that_somebody_waits_for_goes_at_once),
        cmocka_unit_test(a_record_that_nobody_waits_for_waits_for_others),
        cmocka_unit_test(what_was_refused_is_not_stored_because_a_later_record_is),
        cmocka_unit_test(a_producer_whose_records_time_out_for_half_a_minute_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* topic_writer and topic_follower against a real broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdatomic.h>
#include <string.h>
#include <cmocka.h>

#include "live_kafka.h"

/* What was reported of one record. */
struct report {
    atomic_int n;
    enum err err;
    int32_t partition;
    int64_t offset;
    char reason[128];
};

static void on_report(void *opaque, enum err err, const struct topic_position *at,
                      const char *reason)
{
    struct report *report = opaque;

    report->err = err;
    report->partition = at->partition;
    report->offset = at->offset;
    snprintf(report->reason, sizeof(report->reason), "%s", reason ? reason : "");
    atomic_fetch_add(&report->n, 1);
}

static void acknowledged_is_stored_where_the_report_says(void **state)
{
    enum { N = 300 };
    static struct report reports[N];
    static bool seen[N];
    char topic[64], text[16];
    const char *topics[] = { topic };
    struct headers headers;
    struct why why;

    (void)state;
    live_topic(topic, 4);
    struct topic_writer *w = live_writer();
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%d", i);
        headers_init(&headers);
        headers_put(&headers, "delivery", str_of(text));
        headers_put_i64(&headers, "number", i);
        assert_ok(topic_writer_put(
            w,
            &(struct new_record){
                .topic = topic, .key = str_of(text), .value = str_of(text), .headers = &headers },
            on_report, &reports[i], &why));
    }
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    assert_int_equal(topic_writer_pending(w), 0);
    topic_writer_free(w);

    const struct topic_follower_options options = { .kafka = live_kafka(),
                                                    .topics = topics,
                                                    .n_topics = 1 };
    struct topic_follower *f = NULL;
    assert_ok(topic_follower_start(&f, &options, &why));
    for (int n = 0; n < N; n++) {
        const struct record *r = topic_follower_next(f, WAIT_MS);
        assert_non_null(r);
        int i = (int)headers_get_i64(&r->headers, "number", -1);
        assert_in_range(i, 0, N - 1);
        assert_false(seen[i]);
        seen[i] = true;
        assert_int_equal(reports[i].n, 1);
        assert_int_equal(reports[i].err, OK);
        assert_int_equal(reports[i].partition, r->at.partition);
        assert_int_equal(reports[i].offset, r->at.offset);
        assert_true(str_eq(r->key, r->value));
        assert_true(str_eq(r->key, headers_get(&r->headers, "delivery")));
    }
    assert_null(topic_follower_next(f, 0));
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (!topic_follower_caught_up(f) && clock_mono_ms() < deadline)
        assert_null(topic_follower_next(f, 100));
    assert_true(topic_follower_caught_up(f));
    topic_follower_free(f);
}

static void a_webhook_of_25_mib_fits_and_absent_values_stay_absent(void **state)
{
    enum { SIZE = 25 << 20 };
    char topic[64];
    const char *topics[] = { topic };
    char *large = malloc(SIZE);
    struct topic_position at;
    struct report report = { .n = 0 };
    struct why why;

    (void)state;
    assert_non_null(large);
    memset(large, 'x', SIZE);
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    assert_ok(topic_writer_give(
        w, &(struct new_record){ .topic = topic, .key = STR_LIT("k"), .value = { large, SIZE } },
        on_report, &report, &why));
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    assert_int_equal(report.err, OK);
    assert_ok(topic_writer_put_wait(w, topic, STR_LIT("k"), STR_NONE, NULL, &at, &why));
    assert_int_equal(at.offset, 1);
    topic_writer_free(w);

    const struct topic_follower_options options = { .kafka = live_kafka(),
                                                    .topics = topics,
                                                    .n_topics = 1 };
    struct topic_follower *f = NULL;
    assert_ok(topic_follower_start(&f, &options, &why));
    const struct record *r = topic_follower_next(f, WAIT_MS);
    assert_non_null(r);
    assert_int_equal(r->value.len, SIZE);
    r = topic_follower_next(f, WAIT_MS);
    assert_non_null(r);
    assert_null(r->value.ptr);
    assert_true(str_is(r->key, "k"));
    topic_follower_free(f);
}

static void what_is_larger_than_the_limit_is_refused_and_stays_the_callers(void **state)
{
    enum { SIZE = 27 << 20 };
    char *large = calloc(1, SIZE);
    struct report report = { .n = 0 };
    struct why why;
    char topic[64];

    (void)state;
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    assert_int_equal(
        topic_writer_give(w, &(struct new_record){ .topic = topic, .value = { large, SIZE } },
                          on_report, &report, &why),
        ERR_REFUSE);
    free(large);
    topic_writer_free(w);
    assert_int_equal(report.n, 0);
}

static void a_place_is_a_partition_whatever_the_key(void **state)
{
    enum { PARTITIONS = 3, PLACES = 5 };
    static const struct str keys[] = { { "a", 1 }, { "b", 1 }, { "c", 1 }, { "", 0 }, { NULL, 0 } };
    enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };
    struct report reports[PLACES][N_KEYS] = { 0 }, by_key[N_KEYS] = { 0 };
    struct topic_position at;
    struct why why;
    char topic[64];

    (void)state;
    live_topic(topic, PARTITIONS);
    struct topic_writer *w = live_writer();
    for (int k = 0; k < N_KEYS; k++) {
        for (int i = 0; i < PLACES; i++)
            assert_ok(topic_writer_put(
                w,
                &(struct new_record){
                    .topic = topic, .slot = i + 1, .key = keys[k], .value = STR_LIT("v") },
                on_report, &reports[i][k], &why));
        assert_ok(topic_writer_put(
            w, &(struct new_record){ .topic = topic, .key = keys[k], .value = STR_LIT("v") },
            on_report, &by_key[k], &why));
        /* nobody wants to know */
        assert_ok(
            topic_writer_put(w,
                             &(struct new_record){
                                 .topic = topic, .slot = 1, .key = keys[k], .value = STR_LIT("v") },
                             NULL, NULL, &why));
    }
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    for (int k = 0; k < N_KEYS; k++) {
        for (int i = 0; i < PLACES; i++) {
            assert_int_equal(reports[i][k].err, OK);
            assert_int_equal(reports[i][k].partition, i < PARTITIONS ? i : PARTITIONS - 1);
        }
        if (!keys[k].len)
            continue;
        assert_ok(topic_writer_put_wait(w, topic, keys[k], STR_LIT("v"), NULL, &at, &why));
        assert_int_equal(by_key[k].partition, at.partition);
    }
    topic_writer_free(w);
}

static void missing_topics_are_named(void **state)
{
    char topic[64];
    struct why why;

    (void)state;
    live_topic(topic, 1);
    const char *topics[] = { topic, "no-such-topic", "nor-this" };
    struct topic_writer *w = live_writer();
    assert_ok(topic_writer_check(w, topics, 1, WAIT_MS, &why));
    assert_int_equal(topic_writer_check(w, topics, 3, WAIT_MS, &why), ERR_STOP);
    assert_non_null(strstr(why.text, "no-such-topic, nor-this"));
    assert_null(strstr(why.text, topic));
    topic_writer_free(w);
}

static void an_unreachable_broker_is_named_with_the_remedy(void **state)
{
    const struct topic_writer_options options = { .kafka = { .brokers = "127.0.0.1:1" } };
    struct topic_writer *w;
    struct why why;

    (void)state;
    assert_ok(topic_writer_new(&w, &options, &why));
    assert_int_equal(topic_writer_check(w, NULL, 0, 2000, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "cannot reach Kafka at 127.0.0.1:1"));
    assert_non_null(strstr(why.text, "Connection refused"));
    assert_non_null(strstr(why.text, "set KAFKA_BROKERS"));
    topic_writer_free(w);
}

/* Without a thread of its own the writer says through the wake that reports wait. */
static void reports_wake_the_loop_that_serves_them(void **state)
{
    char topic[64];
    struct wake wake;
    struct why why;

    (void)state;
    live_topic(topic, 1);
    assert_ok(wake_init(&wake, &why));
    const struct topic_writer_options options = { .kafka = live_kafka(), .wake = &wake };
    struct topic_writer *w;
    assert_ok(topic_writer_new(&w, &options, &why));
    for (int round = 0; round < 5; round++) {
        struct report report = { .n = 0 };
        assert_ok(topic_writer_put(w, &(struct new_record){ .topic = topic, .value = STR_LIT("v") },
                                   on_report, &report, &why));
        int64_t deadline = clock_mono_ms() + WAIT_MS;
        while (!report.n) {
            wake_wait(&wake, WAIT_MS);
            wake_reset(&wake);
            topic_writer_poll(w, 0);
            if (clock_mono_ms() >= deadline)
                fail_msg("round %d: nothing woke the loop", round);
        }
        assert_int_equal(report.err, OK);
    }
    topic_writer_free(w);
    wake_clear(&wake);
}

static void a_broker_that_does_not_answer_leaves_unknown(void **state)
{
    const pid_t pid = live_pid();
    struct report report = { .n = 0 };
    struct topic_position at;
    struct why why;
    char topic[64];

    (void)state;
    live_topic(topic, 1);
    const struct topic_writer_options options = { .kafka = live_kafka(),
                                                  .message_timeout_ms = 1500,
                                                  .own_thread = true };
    struct topic_writer *w;
    assert_ok(topic_writer_new(&w, &options, &why));
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (topic_writer_put_wait(w, topic, STR_NONE, STR_LIT("1"), NULL, &at, &why)) /* connects */
        if (clock_mono_ms() >= deadline)
            fail_msg("%s", why.text);
    live_freeze(pid);
    int64_t started = clock_mono_ms();
    enum err put = topic_writer_put(
        w, &(struct new_record){ .topic = topic, .value = STR_LIT("2") }, on_report, &report, &why);
    enum err flushed = put;
    for (int i = 0; !put && !report.n && i < WAIT_MS / 100; i++)
        flushed = topic_writer_flush(w, 100, &why);
    live_thaw(pid);
    assert_int_equal(put, OK);
    assert_int_equal(flushed, OK); /* nothing waits any more: it was reported */
    assert_int_equal(report.n, 1);
    assert_int_equal(report.err, ERR_UNKNOWN);
    assert_in_range(clock_mono_ms() - started, 1000, WAIT_MS);
    topic_writer_free(w);
}

/* Whoever frees a writer still learns what became of each record. */
static void what_is_dropped_by_free_is_reported_unknown(void **state)
{
    const struct topic_writer_options options = { .kafka = { .brokers = "127.0.0.1:1" },
                                                  .own_thread = true };
    struct report report = { .n = 0 };
    struct topic_writer *w;
    struct why why;

    (void)state;
    assert_ok(topic_writer_new(&w, &options, &why));
    assert_ok(topic_writer_put(w, &(struct new_record){ .topic = "t", .value = STR_LIT("v") },
                               on_report, &report, &why));
    topic_writer_free(w);
    assert_int_equal(report.n, 1);
    assert_int_equal(report.err, ERR_UNKNOWN);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_is_stored_where_the_report_says),
        cmocka_unit_test(a_webhook_of_25_mib_fits_and_absent_values_stay_absent),
        cmocka_unit_test(what_is_larger_than_the_limit_is_refused_and_stays_the_callers),
        cmocka_unit_test(a_place_is_a_partition_whatever_the_key),
        cmocka_unit_test(missing_topics_are_named),
        cmocka_unit_test(an_unreachable_broker_is_named_with_the_remedy),
        cmocka_unit_test(reports_wake_the_loop_that_serves_them),
        cmocka_unit_test(a_broker_that_does_not_answer_leaves_unknown),
        cmocka_unit_test(what_is_dropped_by_free_is_reported_unknown),
    };
    if (argc > 1) /* the name of one test */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

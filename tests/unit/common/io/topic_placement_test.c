/* A partition whose leader goes and comes back while librdkafka's thread of the first broker waits
 * for a name server stays with the other broker: with records that nobody stores, and nobody reads,
 * for as long as the process lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_follower.h"
#include "common/io/topic_placement.h"
#include "common/io/topic_reader.h"
#include "common/io/topic_writer_inner.h"

#define LIMIT_MS      20000
#define NOTICE_MS     500 /* until a client has seen where the leader is */
#define STATISTICS_MS "600"
#define GROUP         "readers"

/* ---- a name server that does not answer ---- */

/* What librdkafka calls its thread of the first broker. */
#define HUNG_THREAD "rdk:broker1"

static atomic_bool hung, waiting;

/* Instead of glibc's. */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    char thread[16];
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    while (atomic_load(&hung) && !strcmp(thread, HUNG_THREAD)) {
        atomic_store(&waiting, true);
        poll(NULL, 0, 10);
    }
    return real(node, service, hints, found);
}

static const struct kafka_property properties[] = {
    { "topic.metadata.refresh.interval.ms", "100" },
    { "statistics.interval.ms", STATISTICS_MS },
    { "client.rack", "here" }, /* last: only some have one */
};

static struct kafka_options options_of(const struct brokers *b)
{
    return (struct kafka_options){ .brokers = b->addresses,
                                   .properties = properties,
                                   .n_properties = sizeof(properties) / sizeof(*properties) - 1 };
}

/* The first broker goes, and its name is asked for. */
static void hang(const struct brokers *b, void (*turn)(void *), void *opaque)
{
    int64_t deadline = clock_mono_ms() + LIMIT_MS;

    atomic_store(&waiting, false);
    atomic_store(&hung, true);
    rd_kafka_mock_broker_set_down(b->cluster, 1);
    while (!atomic_load(&waiting) && clock_mono_ms() < deadline)
        turn(opaque);
    assert_true(atomic_load(&waiting));
}

/* Of two brokers, the first leads, hangs, and leads again. */
static void leader_goes_and_comes_back(const struct brokers *b, void (*turn)(void *), void *opaque)
{
    hang(b, turn, opaque);
    rd_kafka_mock_partition_set_leader(b->cluster, BROKER_TOPIC, 0, 2);
    for (int64_t until = clock_mono_ms() + NOTICE_MS; clock_mono_ms() < until;)
        turn(opaque);
    rd_kafka_mock_broker_set_up(b->cluster, 1);
    rd_kafka_mock_partition_set_leader(b->cluster, BROKER_TOPIC, 0, 1);
    for (int64_t until = clock_mono_ms() + NOTICE_MS; clock_mono_ms() < until;)
        turn(opaque);
    atomic_store(&hung, false);
    for (int64_t until = clock_mono_ms() + NOTICE_MS; clock_mono_ms() < until;)
        turn(opaque);
}

enum { TRIES = 6 };

static const struct brokers *now; /* those of the test */

/* A busy machine may see too late where the leader is: then it is tried again. */
static void go_astray(const struct brokers *b, void (*turn)(void *), bool (*is_astray)(void *),
                      void *opaque)
{
    now = b;
    for (int i = 0; i < TRIES; i++) {
        leader_goes_and_comes_back(b, turn, opaque);
        if (is_astray(opaque))
            return;
    }
    fail_msg("not in %d tries", TRIES);
}

/* ---- what statistics say ---- */

#define STATISTICS(partitions) "{\"topics\":{\"t\":{\"partitions\":{" partitions "}}}}"
#define OF(type, state, stateage, partitions)                                                      \
    "{\"type\":\"" type "\",\"brokers\":{\"b:1/1\":{\"nodeid\":1,\"state\":\"UP\",\"stateage\":"   \
    "99000000},\"b:2/2\":{\"nodeid\":2,\"state\":\"" state "\",\"stateage\":" #stateage            \
    "}},\"topics\":{\"t\":{\"partitions\":{" partitions "}}}}"
#define PARTITION(id, broker, leader)                                                              \
    "\"" #id "\":{\"partition\":" #id ",\"broker\":" #broker ",\"leader\":" #leader                \
    ",\"desired\":true}"
#define NOT_OURS "\"1\":{\"partition\":1,\"broker\":2,\"leader\":1,\"desired\":false}"

/* ---- writing ---- */

static enum err put(struct topic_writer *w)
{
    struct headers headers;
    struct why why;

    headers_init(&headers);
    return topic_writer_put_wait(w, BROKER_TOPIC, STR_LIT("key"), STR_LIT("value"), &headers, NULL,
                                 &why);
}

/* What is under way when a name server hangs is not reported before it answers. */
static void write_one(void *opaque)
{
    struct headers headers;
    struct why why;

    headers_init(&headers);
    assert_int_equal(topic_writer_put(opaque, BROKER_TOPIC, STR_LIT("key"), STR_LIT("value"),
                                      &headers, NULL, NULL, &why),
                     OK);
    topic_writer_poll(opaque, 50);
}

/* Puts until one is stored. */
static void put_until_stored(struct topic_writer *w)
{
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    while (put(w) != OK)
        assert_true(clock_mono_ms() < deadline);
}

static struct topic_writer *writer_of(const struct brokers *b)
{
    const struct topic_writer_options options = { .kafka = options_of(b),
                                                  .message_timeout_ms = 300 };
    struct topic_writer *w;
    struct why why;

    assert_int_equal(topic_writer_new(&w, &options, &why), OK);
    put_until_stored(w);
    return w;
}

/* Both brokers are there. */
static bool cannot_write(void *opaque)
{
    return put(opaque) == ERR_UNKNOWN;
}

static void a_writer_begins_anew(void **state)
{
    (void)state;
    struct brokers b = brokers_begin(2);
    struct topic_writer *w = writer_of(&b);
    go_astray(&b, write_one, cannot_write, w);
    put_until_stored(w);
    topic_writer_free(w);
    brokers_end(&b);
}

static void a_record_is_not_waited_for_as_long_as_for_a_name_server(void **state)
{
    (void)state;
    struct brokers b = brokers_begin(1);
    struct topic_writer *w = writer_of(&b);
    hang(&b, write_one, w);
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(put(w), ERR_UNKNOWN);
    assert_in_range(clock_mono_ms() - began_ms, 300, 5000);
    atomic_store(&hung, false);
    topic_writer_free(w); /* which reports what nobody waits for any more */
    brokers_end(&b);
}

struct counts {
    int put, reported;
};

static void on_counted(void *opaque, enum err err, const struct topic_position *at,
                       const char *reason)
{
    (void)err, (void)at, (void)reason;
    ((struct counts *)opaque)->reported++;
}

static void put_counted(struct topic_writer *w, struct counts *counts)
{
    struct headers headers;
    struct why why;

    headers_init(&headers);
    assert_int_equal(topic_writer_put(w, BROKER_TOPIC, STR_LIT("key"), STR_LIT("value"), &headers,
                                      on_counted, counts, &why),
                     OK);
    counts->put++;
}

static void a_writer_begins_anew_while_a_name_server_hangs_and_reports_each_record(void **state)
{
    struct why why;
    struct counts counts = { 0 };

    (void)state;
    struct brokers b = brokers_begin(1);
    struct topic_writer *w = writer_of(&b);
    hang(&b, write_one, w);
    for (int i = 0; i < 3; i++) {
        put_counted(w, &counts);
        topic_placement_see(&w->client.placement, str_of(STATISTICS(PARTITION(0, 2, 1))));
    }
    int64_t began_ms = clock_mono_ms();
    topic_writer_poll(w, 0);
    assert_in_range(clock_mono_ms() - began_ms, 0, 1000);
    assert_non_null(w->retired);
    put_counted(w, &counts);
    assert_int_equal(topic_writer_flush(w, 1000, &why), ERR_UNKNOWN); /* of the old one, too */
    assert_non_null(w->retired);
    assert_true(topic_writer_pending(w) >= 4);
    atomic_store(&hung, false);
    rd_kafka_mock_broker_set_up(b.cluster, 1);
    put_until_stored(w);
    assert_int_equal(topic_writer_flush(w, LIMIT_MS, &why), OK);
    assert_null(w->retired);
    assert_int_equal(topic_writer_pending(w), 0);
    assert_int_equal(counts.reported, counts.put);
    topic_writer_free(w);
    brokers_end(&b);
}

/* ---- reading ---- */

static void read_one(void *opaque)
{
    record_done(topic_reader_next(opaque, 10));
}

static bool cannot_read(void *opaque)
{
    struct record *record;

    brokers_write(now, 1);
    record = topic_reader_next(opaque, NOTICE_MS);
    record_done(record);
    return !record;
}

static struct topic_reader *stray_reader(const struct brokers *b, const struct kafka_options *kafka)
{
    const char *topic = BROKER_TOPIC;
    const struct topic_reader_options options = {
        .kafka = *kafka, .group = GROUP, .topics = &topic, .n_topics = 1
    };
    struct topic_reader *r;
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    rd_kafka_mock_coordinator_set(b->cluster, "group", GROUP, 2);
    assert_int_equal(topic_reader_new(&r, &options, &why), OK);
    while (!topic_reader_assigned(r) || topic_reader_share(r).unread) {
        read_one(r);
        assert_true(clock_mono_ms() < deadline);
    }
    go_astray(b, read_one, cannot_read, r);
    return r;
}

static void a_reader_is_given_up(void **state)
{
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = brokers_begin(2);
    struct kafka_options kafka = options_of(&b);
    struct topic_reader *r = stray_reader(&b, &kafka);
    while (!topic_reader_fatal(r, &why)) {
        read_one(r);
        assert_true(clock_mono_ms() < deadline);
    }
    assert_string_equal(why.text, "Kafka client: " BROKER_TOPIC
                                  " [0] is asked of broker 2, but broker 1 leads it");
    topic_reader_free(r);
    brokers_end(&b);
}

/* Brokers of its rack may be asked that lead nothing. */
static void a_reader_with_a_rack_is_not(void **state)
{
    struct why why;

    (void)state;
    struct brokers b = brokers_begin(2);
    struct kafka_options kafka = options_of(&b);
    kafka.n_properties++;
    struct topic_reader *r = stray_reader(&b, &kafka);
    for (int64_t until = clock_mono_ms() + 5 * NOTICE_MS; clock_mono_ms() < until;)
        read_one(r);
    assert_false(topic_reader_fatal(r, &why));
    topic_reader_free(r);
    brokers_end(&b);
}

static void follow_one(void *opaque)
{
    (void)topic_follower_next(opaque, 10);
}

static bool cannot_follow(void *opaque)
{
    brokers_write(now, 1);
    return !topic_follower_next(opaque, NOTICE_MS);
}

static void a_follower_is_given_up(void **state)
{
    const char *topic = BROKER_TOPIC;
    struct topic_follower *f;
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = brokers_begin(2);
    const struct topic_follower_options options = { .kafka = options_of(&b),
                                                    .topics = &topic,
                                                    .n_topics = 1 };
    assert_int_equal(topic_follower_new(&f, &options, &why), OK);
    while (!topic_follower_caught_up(f)) {
        follow_one(f);
        assert_true(clock_mono_ms() < deadline);
    }
    go_astray(&b, follow_one, cannot_follow, f);
    while (!topic_follower_astray(f, &why)) {
        follow_one(f);
        assert_true(clock_mono_ms() < deadline);
    }
    topic_follower_free(f);
    brokers_end(&b);
}

/* ---- what follows from statistics ---- */

static const char *seen(struct topic_placement *p, const char *statistics, int times)
{
    for (int i = 0; i < times; i++)
        topic_placement_see(p, str_of(statistics));
    return topic_placement_astray(p);
}

static void what_is_told_three_times_has_stayed(void **state)
{
    static const char away[] = STATISTICS(PARTITION(0, 3, 3) "," PARTITION(7, 2, 1));
    struct topic_placement p;

    (void)state;
    topic_placement_init(&p);
    assert_null(seen(&p, away, 2));
    assert_string_equal(seen(&p, away, 1), "t [7] is asked of broker 2, but broker 1 leads it");
    assert_non_null(seen(&p, away, 1));
    assert_null(seen(&p, STATISTICS(PARTITION(7, 1, 1)), 1)); /* it went home */
    assert_null(seen(&p, away, 2));
    assert_non_null(seen(&p, away, 1));
    topic_placement_clear(&p);
}

static void what_moves_is_no_stray(void **state)
{
    struct topic_placement p;

    (void)state;
    topic_placement_init(&p);
    for (int i = 0; i < 5; i++) {
        assert_null(seen(&p, STATISTICS(PARTITION(1, 2, 1)), 2));
        assert_null(seen(&p, STATISTICS(PARTITION(2, 2, 1)), 2)); /* another one */
        assert_null(seen(&p, STATISTICS(PARTITION(1, 1, 2)), 2)); /* the other way */
    }
    topic_placement_clear(&p);
}

static void what_counts_depends_on_the_broker_and_on_who_asks(void **state)
{
    static const struct {
        const char *statistics;
        bool counts;
    } cases[] = {
        { OF("producer", "UP", 99000000, PARTITION(1, 2, 1)), true },
        { OF("consumer", "UP", 99000000, PARTITION(1, 2, 1)), true },
        { OF("consumer", "CONNECT", 900000, PARTITION(1, 2, 1)), true },    /* as often as it can */
        { OF("consumer", "CONNECT", 11000000, PARTITION(1, 2, 1)), false }, /* waits for a name */
        { OF("producer", "TRY_CONNECT", 11000000, PARTITION(1, 2, 1)), false },
        { OF("producer", "UP", 99000000, NOT_OURS), true }, /* a producer has none of its own */
        { OF("consumer", "UP", 99000000, NOT_OURS), false },
        { STATISTICS(PARTITION(1, -1, 1)), false },
        { STATISTICS(PARTITION(1, 1, -1)), false },
        { STATISTICS(""), false },
        { "{}", false },
        { "no JSON", false },
        { STATISTICS("\"1\":{}"), false },
        { STATISTICS("\"1\":7"), false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct topic_placement p;
        topic_placement_init(&p);
        assert_int_equal(seen(&p, cases[i].statistics, 4) != NULL, cases[i].counts);
        topic_placement_clear(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_three_times_has_stayed),
        cmocka_unit_test(what_moves_is_no_stray),
        cmocka_unit_test(what_counts_depends_on_the_broker_and_on_who_asks),
        cmocka_unit_test(a_writer_begins_anew),
        cmocka_unit_test(a_writer_begins_anew_while_a_name_server_hangs_and_reports_each_record),
        cmocka_unit_test(a_record_is_not_waited_for_as_long_as_for_a_name_server),
        cmocka_unit_test(a_reader_is_given_up),
        cmocka_unit_test(a_reader_with_a_rack_is_not),
        cmocka_unit_test(a_follower_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
#include "common/io/topic_writer.h"

#define LIMIT_MS      20000
#define NOTICE_MS     600 /* until a client has seen where the leader is */
#define STATISTICS_MS "1000"
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
    { NULL, NULL },
};

static struct kafka_options options_of(const struct brokers *b)
{
    return (struct kafka_options){ .brokers = b->addresses,
                                   .properties = properties,
                                   .n_properties = sizeof(properties) / sizeof(*properties) - 1 };
}

/* Of two brokers, the first leads, hangs, and leads again. */
static void leader_goes_and_comes_back(const struct brokers *b, void (*turn)(void *), void *opaque)
{
    int64_t deadline = clock_mono_ms() + LIMIT_MS;

    atomic_store(&waiting, false);
    atomic_store(&hung, true);
    rd_kafka_mock_broker_set_down(b->cluster, 1);
    while (!atomic_load(&waiting) && clock_mono_ms() < deadline)
        turn(opaque);
    assert_true(atomic_load(&waiting));
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

static void a_writer_begins_anew(void **state)
{
    struct topic_writer *w;
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = brokers_begin(2);
    const struct topic_writer_options options = { .kafka = options_of(&b),
                                                  .message_timeout_ms = 300 };
    assert_int_equal(topic_writer_new(&w, &options, &why), OK);
    while (put(w) != OK)
        assert_true(clock_mono_ms() < deadline);
    leader_goes_and_comes_back(&b, write_one, w);
    assert_int_equal(put(w), ERR_UNKNOWN); /* both brokers are there */
    while (put(w) != OK)
        assert_true(clock_mono_ms() < deadline);
    topic_writer_free(w);
    brokers_end(&b);
}

/* ---- reading ---- */

static void write_to(const struct brokers *b)
{
    rd_kafka_t *writer = brokers_client(RD_KAFKA_PRODUCER, b->addresses);

    rd_kafka_producev(writer, RD_KAFKA_V_TOPIC(BROKER_TOPIC), RD_KAFKA_V_VALUE("x", 1),
                      RD_KAFKA_V_END);
    assert_int_equal(rd_kafka_flush(writer, LIMIT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(writer);
}

static void read_one(void *opaque)
{
    record_done(topic_reader_next(opaque, 10));
}

static void a_reader_is_given_up(void **state)
{
    const char *topic = BROKER_TOPIC;
    struct topic_reader *r;
    struct why why;
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    (void)state;
    struct brokers b = brokers_begin(2);
    rd_kafka_mock_coordinator_set(b.cluster, "group", GROUP, 2);
    const struct topic_reader_options options = {
        .kafka = options_of(&b), .group = GROUP, .topics = &topic, .n_topics = 1
    };
    assert_int_equal(topic_reader_new(&r, &options, &why), OK);
    while (!topic_reader_assigned(r) || topic_reader_share(r).unread) {
        read_one(r);
        assert_true(clock_mono_ms() < deadline);
    }
    leader_goes_and_comes_back(&b, read_one, r);
    write_to(&b);
    assert_null(topic_reader_next(r, NOTICE_MS)); /* both brokers are there */
    assert_false(topic_reader_fatal(r, &why));
    while (!topic_reader_fatal(r, &why)) {
        read_one(r);
        assert_true(clock_mono_ms() < deadline);
    }
    assert_string_equal(why.text, "Kafka client: " BROKER_TOPIC
                                  " [0] is asked of broker 2, but broker 1 leads it");
    topic_reader_free(r);
    brokers_end(&b);
}

static void follow_one(void *opaque)
{
    (void)topic_follower_next(opaque, 10);
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
    leader_goes_and_comes_back(&b, follow_one, f);
    write_to(&b);
    assert_null(topic_follower_next(f, NOTICE_MS));
    assert_false(topic_follower_astray(f, &why));
    while (!topic_follower_astray(f, &why)) {
        follow_one(f);
        assert_true(clock_mono_ms() < deadline);
    }
    topic_follower_free(f);
    brokers_end(&b);
}

/* ---- what statistics say ---- */

#define STATISTICS(partitions) "{\"topics\":{\"t\":{\"partitions\":{" partitions "}}}}"
#define PARTITION(id, broker, leader)                                                              \
    "\"" #id "\":{\"partition\":" #id ",\"broker\":" #broker ",\"leader\":" #leader "}"

static const char *seen(struct topic_placement *p, const char *statistics, int times)
{
    for (int i = 0; i < times; i++)
        topic_placement_see(p, str_of(statistics));
    return topic_placement_astray(p);
}

static void what_is_told_three_times_lasts(void **state)
{
    static const char away[] = STATISTICS(PARTITION(0, 3, 3) "," PARTITION(7, 2, 1));
    struct topic_placement p;

    (void)state;
    topic_placement_init(&p);
    assert_null(seen(&p, away, 2));
    assert_string_equal(seen(&p, away, 1), "t [7] is asked of broker 2, but broker 1 leads it");
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

static void without_a_broker_or_a_leader_nothing_strays(void **state)
{
    static const char *const quiet[] = {
        STATISTICS(PARTITION(1, -1, 1)),
        STATISTICS(PARTITION(1, 1, -1)),
        STATISTICS(""),
        "{}",
        "no JSON",
        STATISTICS("\"1\":{}"),
        STATISTICS("\"1\":7"),
    };
    struct topic_placement p;

    (void)state;
    topic_placement_init(&p);
    for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
        assert_null(seen(&p, quiet[i], 4));
    topic_placement_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_three_times_lasts),
        cmocka_unit_test(what_moves_is_no_stray),
        cmocka_unit_test(without_a_broker_or_a_leader_nothing_strays),
        cmocka_unit_test(a_writer_begins_anew),
        cmocka_unit_test(a_reader_is_given_up),
        cmocka_unit_test(a_follower_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* librdkafka's thread of a broker that waits for a name server reports no record meanwhile. */
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
#include "common/io/topic_writer.c" /* its inside is looked at */

#define LIMIT_MS    20000
#define HUNG_THREAD "rdk:broker1" /* librdkafka's name for its thread of the first broker */

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

static enum err put(struct topic_writer *w)
{
    struct headers headers;
    struct why why;

    headers_init(&headers);
    return topic_writer_put_wait(w, BROKER_TOPIC, STR_LIT("key"), STR_LIT("value"), &headers, NULL,
                                 &why);
}

static void put_until_stored(struct topic_writer *w)
{
    int64_t deadline = clock_mono_ms() + 2 * LIMIT_MS;

    while (put(w))
        assert_true(clock_mono_ms() < deadline);
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
    assert_int_equal(topic_writer_put(w,
                                      &(struct new_record){ .topic = BROKER_TOPIC,
                                                            .key = STR_LIT("key"),
                                                            .value = STR_LIT("value"),
                                                            .headers = &headers },
                                      on_counted, counts, &why),
                     OK);
    counts->put++;
}

/* A writer that has stored a record, and whose broker has gone since: its name is asked for. */
static struct topic_writer *hung_writer(const struct brokers *b, struct counts *counts)
{
    static const struct kafka_property properties[] = {
        { "topic.metadata.refresh.interval.ms", "100" },
    };
    const struct topic_writer_options options = {
        .kafka = { .brokers = b->addresses, .properties = properties, .n_properties = 1 },
        .message_timeout_ms = 300,
    };
    struct topic_writer *w;
    struct why why;
    int64_t deadline = clock_mono_ms() + LIMIT_MS;

    assert_int_equal(topic_writer_new(&w, &options, &why), OK);
    put_until_stored(w);
    atomic_store(&waiting, false);
    atomic_store(&hung, true);
    rd_kafka_mock_broker_set_down(b->cluster, 1);
    while (!atomic_load(&waiting)) {
        put_counted(w, counts);
        topic_writer_poll(w, 50);
        assert_true(clock_mono_ms() < deadline);
    }
    return w;
}

static void a_writer_begins_anew_while_a_name_server_hangs_and_reports_each_record(void **state)
{
    struct counts counts = { 0 };
    struct brokers b = brokers_begin(2);
    struct topic_writer *w = hung_writer(&b, &counts);
    struct why why;
    (void)state;
    put_counted(w, &counts);
    int64_t began_ms = clock_mono_ms();
    for (int64_t late_ms = 20000; late_ms <= 52000; late_ms += 8000) /* for half a minute */
        note_late(w, began_ms + late_ms);
    renew(w); /* does not wait for that thread, and keeps the producer until all is reported */
    assert_in_range(clock_mono_ms() - began_ms, 0, 1000);
    assert_true(atomic_load(&w->broken));
    assert_int_equal(put(w), ERR_RETRY);
    assert_int_equal(topic_writer_flush(w, 1000, &why), ERR_UNKNOWN);
    assert_true(topic_writer_pending(w) >= 1);
    atomic_store(&hung, false);
    rd_kafka_mock_broker_set_up(b.cluster, 1);
    put_until_stored(w);
    assert_int_equal(topic_writer_flush(w, LIMIT_MS, &why), OK);
    assert_false(atomic_load(&w->broken));
    assert_int_equal(topic_writer_pending(w), 0);
    assert_int_equal(counts.reported, counts.put);
    topic_writer_free(w);
    brokers_end(&b);
    assert_int_equal(rd_kafka_wait_destroyed(LIMIT_MS), 0); /* the old one, on its own thread */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_begins_anew_while_a_name_server_hangs_and_reports_each_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

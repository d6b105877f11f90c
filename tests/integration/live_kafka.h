/* For tests that need a broker: KAFKA_BROKERS says where it is. Each test makes topics of its own.
 */
#ifndef CRCR_TESTS_LIVE_KAFKA_H
#define CRCR_TESTS_LIVE_KAFKA_H

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/crypto/hmac.h"
#include "common/io/topic_admin.h"
#include "common/io/topic_follower.h"
#include "common/io/topic_reader.h"
#include "common/io/topic_writer.h"

#define WAIT_MS 30000 /* for things that happen at once when all is well */

/* Fails the test with the error's own text. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != OK)                                                                          \
            fail_msg("%s: %s", #call, why.text);                                                   \
    } while (0)

static inline struct kafka_options live_kafka(void)
{
    const char *brokers = getenv("KAFKA_BROKERS");

    if (!brokers)
        fail_msg("KAFKA_BROKERS is not set");
    return (struct kafka_options){ .brokers = brokers, .client_id = "live-test" };
}

/* A topic that nobody else uses; its name goes to `name` (and serves as a group's name too). */
static inline void live_topic(char name[64], int partitions)
{
    struct kafka_options kafka = live_kafka();
    struct topic_spec spec = { .partitions = partitions, .n_configs = 1 };
    struct topic_admin *admin;
    struct why why;
    char random[17];

    random_hex(random, 8);
    snprintf(name, 64, "live-%s", random);
    snprintf(spec.name, sizeof(spec.name), "%s", name);
    spec.configs[0] = (struct topic_config){ "max.message.bytes", "27262976" };
    assert_ok(topic_admin_new(&admin, &kafka, 10000, &why));
    assert_ok(topic_admin_create(admin, &spec, "", 1, &why));
    topic_admin_free(admin);
}

static inline struct topic_writer *live_writer(void)
{
    const struct topic_writer_options options = { .kafka = live_kafka(), .own_thread = true };
    struct topic_writer *w;
    struct why why;

    assert_ok(topic_writer_new(&w, &options, &why));
    return w;
}

/* n records with the numbers 0 … n-1 as value, keys k0 … k<keys-1>. */
static inline void live_fill(const char *topic, int n, int keys)
{
    struct topic_writer *w = live_writer();
    struct why why;
    char key[16], value[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "k%d", i % keys);
        snprintf(value, sizeof(value), "%d", i);
        assert_ok(topic_writer_put(w, topic, str_of(key), str_of(value), NULL, NULL, NULL, &why));
    }
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    topic_writer_free(w);
}

static inline struct topic_reader *live_reader(const struct topic_reader_options *options)
{
    struct topic_reader *r;
    struct why why;

    assert_ok(topic_reader_new(&r, options, &why));
    return r;
}

/* The next record; fails when none comes. */
static inline struct record *live_next(struct topic_reader *r)
{
    struct record *record = topic_reader_next(r, WAIT_MS);

    if (!record)
        fail_msg("no record came");
    return record;
}

/* What the group has committed in partition 0; -1: nothing. */
static inline int64_t live_committed(const char *group, const char *topic)
{
    struct kafka_options kafka = live_kafka();
    struct topic_admin *admin;
    struct partition_lag *lags;
    struct why why;
    size_t n;

    assert_ok(topic_admin_new(&admin, &kafka, 10000, &why));
    assert_ok(topic_admin_lag(admin, group, &topic, 1, &lags, &n, &why));
    int64_t committed = lags[0].committed;
    free(lags);
    topic_admin_free(admin);
    return committed;
}

#endif

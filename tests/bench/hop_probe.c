/* What two hops through the broker cost at the moment, with nothing of ours in between: one thread
 * writes, one reads and writes again, one reads. Run beside a load, it is the floor under the time
 * from webhook to dispatch.
 *
 *   usage: hop_probe BROKERS FIRST_TOPIC SECOND_TOPIC BODIES RATE COUNT
 *
 * Prints, of COUNT records after the first two seconds, {"records", "p50_us", "p99_us"}. */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "support/bench.h"
#include "support/kafka.h"

#define WARM_UP_S 2 /* not counted: connections and first fetches */

struct probe {
    rd_kafka_t *producer, *first, *second;
    const char *topics[2];
    struct bodies bodies;
    long rate, count, warm_up;
    struct samples latency;
};

static rd_kafka_t *writer_new(const char *brokers)
{
    static const char *const settings[][2] = {
        { "enable.idempotence", "true" },
        { "linger.ms", "0" },
        { NULL },
    };
    return kafka_producer(brokers, settings, NULL, NULL);
}

static rd_kafka_t *reader_new(const char *brokers, const char *topic)
{
    static const char *const settings[][2] = {
        { "group.id", "bench-hop-probe" },
        { "enable.auto.commit", "false" },
        { "auto.offset.reset", "latest" },
        { NULL },
    };
    rd_kafka_t *rk = kafka_consumer(brokers, settings);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int64_t low, end;
    rd_kafka_poll_set_consumer(rk);
    if (rd_kafka_query_watermark_offsets(rk, topic, 0, &low, &end, 10000))
        bench_die("cannot read %s", topic);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = end;
    if (rd_kafka_assign(rk, list))
        bench_die("cannot read %s", topic);
    rd_kafka_topic_partition_list_destroy(list);
    return rk;
}

/* The key says when the record set out. */
static void put(struct probe *p, const char *topic, const void *key, size_t key_len,
                struct str body)
{
    rd_kafka_resp_err_t err =
        rd_kafka_producev(p->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_len),
                          RD_KAFKA_V_VALUE((void *)(uintptr_t)body.ptr, body.len), RD_KAFKA_V_END);
    if (err)
        bench_die("produce: %s", rd_kafka_err2str(err));
}

static rd_kafka_message_t *next(rd_kafka_t *rk)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 10000);
    if (!message || message->err)
        bench_die("the probe's record did not come: %s",
                  message ? rd_kafka_message_errstr(message) : "10 s passed");
    return message;
}

static void *pass_on(void *opaque)
{
    struct probe *p = opaque;
    for (long i = 0; i < p->warm_up + p->count; i++) {
        rd_kafka_message_t *message = next(p->first);
        put(p, p->topics[1], message->key, message->key_len,
            (struct str){ message->payload, message->len });
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void *receive(void *opaque)
{
    struct probe *p = opaque;
    for (long i = 0; i < p->warm_up + p->count; i++) {
        int64_t set_out_us;
        rd_kafka_message_t *message = next(p->second);
        memcpy(&set_out_us, message->key, sizeof(set_out_us));
        if (i >= p->warm_up)
            samples_add(&p->latency, clock_mono_us() - set_out_us);
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void wait_until(int64_t due_us)
{
    struct timespec at = { .tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000 };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void send_out(struct probe *p)
{
    int64_t started_us = clock_mono_us();
    for (long i = 0; i < p->warm_up + p->count; i++) {
        int64_t due_us = started_us + i * INT64_C(1000000) / p->rate;
        wait_until(due_us);
        put(p, p->topics[0], &due_us, sizeof(due_us), p->bodies.at[(size_t)i % p->bodies.n]);
        rd_kafka_poll(p->producer, 0);
    }
}

int main(int argc, char **argv)
{
    pthread_t between, end;
    struct probe p = { 0 };
    if (argc != 7)
        bench_die("usage: hop_probe BROKERS FIRST_TOPIC SECOND_TOPIC BODIES RATE COUNT");
    p.topics[0] = argv[2];
    p.topics[1] = argv[3];
    bodies_read(&p.bodies, argv[4]);
    p.rate = bench_number(argv[5], 1);
    p.count = bench_number(argv[6], 1);
    p.warm_up = WARM_UP_S * p.rate;
    p.producer = writer_new(argv[1]);
    p.first = reader_new(argv[1], argv[2]);
    p.second = reader_new(argv[1], argv[3]);
    pthread_create(&between, NULL, pass_on, &p);
    pthread_create(&end, NULL, receive, &p);
    send_out(&p);
    pthread_join(between, NULL);
    pthread_join(end, NULL);
    printf("{\"records\":%zu,\"p50_us\":%" PRId64 ",\"p99_us\":%" PRId64 "}\n", p.latency.n,
           samples_quantile(&p.latency, 0.5), samples_quantile(&p.latency, 0.99));
    rd_kafka_flush(p.producer, 1000);
    rd_kafka_destroy(p.producer);
    rd_kafka_destroy(p.first);
    rd_kafka_destroy(p.second);
    samples_clear(&p.latency);
    bodies_clear(&p.bodies);
    return 0;
}

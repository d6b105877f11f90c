/* The bare producer that ingest is held against: librdkafka, configured as ingest configures it,
 * writing the records that ingest would write, as fast as the broker takes them.
 *
 *   usage: produce_loop BROKERS TOPIC BODIES COUNT
 *
 * Prints {"records", "seconds", "cpu_us"}. The bodies are not even copied. */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "support/bench.h"
#include "support/kafka.h"

#define PULL_REQUESTS 1000

static long acknowledged;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk;
    (void)opaque;
    if (message->err)
        bench_die("not acknowledged: %s", rd_kafka_err2str(message->err));
    acknowledged++;
}

static rd_kafka_t *producer_new(const char *brokers)
{
    static const char *const settings[][2] = {
        { "enable.idempotence", "true" },
        { "acks", "all" },
        { "partitioner", "murmur2_random" },
        { "message.max.bytes", "27262976" },
        { "compression.type", "none" },
        { "queue.buffering.max.kbytes", "65536" },
        { NULL },
    };
    return kafka_producer(brokers, settings, on_report, NULL);
}

/* Key and headers of ingest: see topics in the design. */
static rd_kafka_resp_err_t produce(rd_kafka_t *rk, const char *topic, struct str body, long number)
{
    char key[64], pr[24], delivery[MARK_SIZE], received[24];
    mark_write(delivery, &(struct mark){ clock_mono_us(), number, number % PULL_REQUESTS });
    snprintf(pr, sizeof(pr), "%ld", number % PULL_REQUESTS + 1);
    snprintf(key, sizeof(key), "pytorch/pytorch#%s", pr);
    snprintf(received, sizeof(received), "%" PRId64, clock_wall_ms());
    return rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, strlen(key)),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)body.ptr, body.len),
        RD_KAFKA_V_HEADER("event", "pull_request", -1), RD_KAFKA_V_HEADER("action", "opened", -1),
        RD_KAFKA_V_HEADER("delivery", delivery, -1), RD_KAFKA_V_HEADER("pr", pr, -1),
        RD_KAFKA_V_HEADER("head_sha", "da39a3ee5e6b4b0d3255bfef95601890afd80709", -1),
        RD_KAFKA_V_HEADER("received_ms", received, -1), RD_KAFKA_V_HEADER("source", "webhook", -1),
        RD_KAFKA_V_END);
}

int main(int argc, char **argv)
{
    struct bodies bodies;
    if (argc != 5)
        bench_die("usage: produce_loop BROKERS TOPIC BODIES COUNT");
    bodies_read(&bodies, argv[3]);
    long count = bench_number(argv[4], 1);
    rd_kafka_t *rk = producer_new(argv[1]);
    int64_t cpu_us = bench_cpu_us(), started_us = clock_mono_us();

    for (long i = 0; i < count;) {
        rd_kafka_resp_err_t err = produce(rk, argv[2], bodies.at[(size_t)i % bodies.n], i);
        if (err && err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            bench_die("produce: %s", rd_kafka_err2str(err));
        i += !err;
        rd_kafka_poll(rk, err ? 10 : 0);
    }
    while (acknowledged < count)
        rd_kafka_poll(rk, 100);
    printf("{\"records\":%ld,\"seconds\":%.6f,\"cpu_us\":%" PRId64 "}\n", acknowledged,
           (double)(clock_mono_us() - started_us) / 1e6, bench_cpu_us() - cpu_us);
    rd_kafka_destroy(rk);
    bodies_clear(&bodies);
    return 0;
}

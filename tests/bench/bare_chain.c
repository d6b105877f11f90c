/* The floor under a dispatch: librdkafka reads a task, libcurl posts it, librdkafka writes an
 * outcome. No claim, no order, no allowlist, no log. One thread; what a sender costs above it is
 * ours.
 *
 *   usage: bare_chain BROKERS FROM TO URL COUNT IN_FLIGHT PER_RECORD
 *
 * Makes COUNT calls, PER_RECORD of them with each record of FROM, and writes an outcome of each to
 * TO. Prints {"calls", "seconds", "cpu_us"}, when all outcomes are acknowledged. */
#include <curl/curl.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "support/bench.h"
#include "support/kafka.h"
#include "support/post.h"

#define TOKEN_LEN 300 /* as long as a callback token */

struct call {
    CURL *easy;
    struct buf body;
    char delivery[128];
    long number;
};

struct chain {
    rd_kafka_t *reader, *writer;
    const char *to;
    struct post post;
    struct call *calls, **idle;
    rd_kafka_message_t *record; /* of which calls are begun now */
    long n_idle, of_record, per_record, started, done, acknowledged, count;
    char token[TOKEN_LEN + 1];
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct chain *c = opaque;
    (void)rk;
    if (message->err)
        bench_die("not acknowledged: %s", rd_kafka_err2str(message->err));
    c->acknowledged++;
}

/* As the relay's writer is configured. */
static rd_kafka_t *writer_new(struct chain *c, const char *brokers)
{
    static const char *const settings[][2] = {
        { "enable.idempotence", "true" },
        { "acks", "all" },
        { "linger.ms", "1" },
        { "partitioner", "murmur2_random" },
        { "compression.type", "none" },
        { NULL },
    };
    return kafka_producer(brokers, settings, on_report, c);
}

/* As the relay's reader is, without a group: all partitions from their beginning. With queues this
 * small librdkafka stops reading for up to a second when one is full (before 2.2.0): CPU is a floor
 * here, the rate is none. */
static rd_kafka_t *reader_new(const char *brokers, const char *topic)
{
    static const char *const settings[][2] = {
        { "group.id", "bench-bare-chain" },
        { "enable.auto.commit", "false" },
        { "queued.max.messages.kbytes", "4096" },
        { "queued.min.messages", "1000" },
        { "fetch.message.max.bytes", "262144" },
        { "fetch.wait.max.ms", "100" },
        { NULL },
    };
    const struct rd_kafka_metadata *found;
    rd_kafka_t *rk = kafka_consumer(brokers, settings);
    rd_kafka_topic_t *one = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(12);
    rd_kafka_poll_set_consumer(rk);
    if (rd_kafka_metadata(rk, 0, one, &found, 10000) || !found->topics[0].partition_cnt)
        bench_die("cannot read %s", topic);
    for (int i = 0; i < found->topics[0].partition_cnt; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    if (rd_kafka_assign(rk, list))
        bench_die("cannot read %s", topic);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_metadata_destroy(found);
    rd_kafka_topic_destroy(one);
    return rk;
}

/* Takes the next record when the last one has all its calls; false: none came in wait_ms. */
static bool next_record(struct chain *c, int wait_ms)
{
    if (c->record && c->of_record < c->per_record)
        return true;
    if (c->record)
        rd_kafka_message_destroy(c->record);
    c->record = rd_kafka_consumer_poll(c->reader, wait_ms);
    if (c->record && c->record->err)
        bench_die("cannot read: %s", rd_kafka_message_errstr(c->record));
    c->of_record = 0;
    return c->record;
}

static void delivery_of(char *to, size_t size, const rd_kafka_message_t *record)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;
    if (rd_kafka_message_headers(record, &headers) ||
        rd_kafka_header_get_last(headers, "delivery", &value, &len))
        bench_die("a record without a delivery is no task");
    snprintf(to, size, "%.*s", (int)len, (const char *)value);
}

static void start(struct chain *c)
{
    struct call *call = c->idle[--c->n_idle];
    call->number = c->started++;
    c->of_record++;
    delivery_of(call->delivery, sizeof(call->delivery), c->record);
    buf_reset(&call->body);
    buf_puts(&call->body, "{\"event_type\":\"pull_request\",\"client_payload\":{\"event_type\":"
                          "\"pull_request\",\"delivery_id\":\"");
    buf_puts(&call->body, call->delivery);
    buf_puts(&call->body, "\",\"callback_token\":\"");
    buf_puts(&call->body, c->token);
    buf_puts(&call->body, "\",\"payload\":");
    buf_put(&call->body, (struct str){ c->record->payload, c->record->len });
    buf_puts(&call->body, "}}");
    post_start(&c->post, call->easy, buf_str(&call->body));
}

static void put_outcome(struct chain *c, const struct call *call)
{
    char key[192], value[640], at[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms(), at);
    snprintf(key, sizeof(key), "%s/bench/r%ld", call->delivery, call->number % 16);
    snprintf(
        value, sizeof(value),
        "{\"delivery_id\":\"%s\",\"repo\":\"bench/r%ld\",\"tier\":\"L1\",\"kind\":\"dispatch\","
        "\"run_id\":null,\"event_type\":\"pull_request\",\"pr_number\":1,\"head_sha\":"
        "\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"outcome\":\"dispatched\","
        "\"http_status\":204,\"attempt\":1,\"latency_ms\":5,\"error\":null,"
        "\"seq\":\"1795231200000:3:17\",\"event_key\":\"pytorch/pytorch#1\",\"at\":\"%s\","
        "\"maybe_duplicate\":false,\"action\":\"opened\",\"received_ms\":1795231200000}",
        call->delivery, call->number % 16, at);
    rd_kafka_resp_err_t err = rd_kafka_producev(
        c->writer, RD_KAFKA_V_TOPIC(c->to), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE(value, strlen(value)),
        RD_KAFKA_V_HEADER("delivery", call->delivery, -1),
        RD_KAFKA_V_HEADER("repo", "bench/r0", -1), RD_KAFKA_V_END);
    if (err)
        bench_die("produce: %s", rd_kafka_err2str(err));
}

static void collect(struct chain *c)
{
    for (CURL *easy; (easy = post_next(&c->post));) {
        struct call *call;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
        put_outcome(c, call);
        c->idle[c->n_idle++] = call;
        c->done++;
    }
}

static void run(struct chain *c)
{
    int running = 0;
    while (c->acknowledged < c->count) {
        while (c->n_idle && c->started < c->count && next_record(c, running ? 0 : 100)) {
            start(c);
            running = 1;
        }
        curl_multi_perform(c->post.multi, &running);
        collect(c);
        rd_kafka_poll(c->writer, c->done < c->count ? 0 : 10);
        if (running)
            curl_multi_poll(c->post.multi, NULL, 0, 10, NULL);
    }
}

int main(int argc, char **argv)
{
    struct chain c = { 0 };
    if (argc != 8)
        bench_die("usage: bare_chain BROKERS FROM TO URL COUNT IN_FLIGHT PER_RECORD");
    c.to = argv[3];
    c.count = bench_number(argv[5], 1);
    c.n_idle = bench_number(argv[6], 1);
    c.per_record = bench_number(argv[7], 1);
    memset(c.token, 'x', TOKEN_LEN);
    post_init(&c.post, argv[4], "bare_chain");
    long n_calls = c.n_idle;
    c.calls = mem_alloc((size_t)n_calls, sizeof(*c.calls));
    c.idle = mem_alloc((size_t)n_calls, sizeof(struct call *));
    for (long i = 0; i < n_calls; i++) {
        c.calls[i] = (struct call){ .easy = curl_easy_init() };
        curl_easy_setopt(c.calls[i].easy, CURLOPT_PRIVATE, &c.calls[i]);
        buf_init(&c.calls[i].body, 1 << 20);
        c.idle[i] = &c.calls[i];
    }
    c.reader = reader_new(argv[1], argv[2]);
    c.writer = writer_new(&c, argv[1]);
    int64_t cpu_us = bench_cpu_us(), started_us = clock_mono_us();

    run(&c);
    post_print(c.done, started_us, cpu_us);
    for (long i = 0; i < n_calls; i++) {
        curl_easy_cleanup(c.calls[i].easy);
        buf_clear(&c.calls[i].body);
    }
    if (c.record)
        rd_kafka_message_destroy(c.record);
    rd_kafka_consumer_close(c.reader);
    rd_kafka_destroy(c.reader);
    rd_kafka_destroy(c.writer);
    post_clear(&c.post);
    free(c.calls);
    free(c.idle);
    return 0;
}

/* The floor under a dispatch: librdkafka reads a task, libcurl posts it, librdkafka writes an
 * outcome. No claim, no order, no allowlist, no log. One thread; what a sender costs above it is
 * ours.
 *
 *   usage: bare_chain BROKERS FROM TO URL COUNT IN_FLIGHT PER_RECORD
 *
 * Makes COUNT calls, PER_RECORD of them with each record of FROM, and writes an outcome of each to
 * TO. Prints {"calls", "seconds", "cpu_us"}, when all outcomes are acknowledged. */
#include <curl/curl.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "support/bench.h"

#define TOKEN_LEN 300 /* as long as a callback token */

struct call {
    CURL *easy;
    struct buf body;
    char delivery[128];
    long number;
};

struct chain {
    rd_kafka_t *reader, *writer;
    const char *to, *url;
    CURLM *multi;
    struct curl_slist *headers;
    struct call *calls, **idle;
    rd_kafka_message_t *record; /* of which calls are begun now */
    long n_idle, of_record, per_record, started, done, acknowledged, count;
    char token[TOKEN_LEN + 1];
};

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)))
        bench_die("%s", why);
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct chain *c = opaque;
    (void)rk;
    if (message->err)
        bench_die("not acknowledged: %s", rd_kafka_err2str(message->err));
    c->acknowledged++;
}

static rd_kafka_t *client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *brokers)
{
    char why[256];
    set(conf, "bootstrap.servers", brokers);
    set(conf, "socket.nagle.disable", "true");
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof(why));
    if (!rk)
        bench_die("%s", why);
    return rk;
}

/* As the relay's writer is configured. */
static rd_kafka_t *writer_new(struct chain *c, const char *brokers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "linger.ms", "1");
    set(conf, "partitioner", "murmur2_random");
    set(conf, "compression.type", "none");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, c);
    return client_new(RD_KAFKA_PRODUCER, conf, brokers);
}

/* As the relay's reader is, without a group: all partitions from their beginning. With queues this
 * small librdkafka stops reading for up to a second when one is full (before 2.2.0): CPU is a floor
 * here, the rate is none. */
static rd_kafka_t *reader_new(const char *brokers, const char *topic)
{
    const struct rd_kafka_metadata *found;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", "bench-bare-chain");
    set(conf, "enable.auto.commit", "false");
    set(conf, "queued.max.messages.kbytes", "4096");
    set(conf, "queued.min.messages", "1000");
    set(conf, "fetch.message.max.bytes", "262144");
    set(conf, "fetch.wait.max.ms", "100");
    rd_kafka_t *rk = client_new(RD_KAFKA_CONSUMER, conf, brokers);
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

static size_t ignore(char *text, size_t size, size_t n, void *opaque)
{
    (void)text;
    (void)opaque;
    return size * n;
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
    curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(call->easy, CURLOPT_URL, c->url);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, buf_str(&call->body).ptr);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long)buf_str(&call->body).len);
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(c->multi, call->easy);
}

static void put_outcome(struct chain *c, const struct call *call, long status)
{
    char key[192], value[640], at[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms(), at);
    snprintf(key, sizeof(key), "%s/bench/r%ld", call->delivery, call->number % 16);
    snprintf(
        value, sizeof(value),
        "{\"delivery_id\":\"%s\",\"repo\":\"bench/r%ld\",\"tier\":\"L1\",\"kind\":\"dispatch\","
        "\"run_id\":null,\"event_type\":\"pull_request\",\"pr_number\":1,\"head_sha\":"
        "\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"outcome\":\"dispatched\","
        "\"http_status\":%ld,\"attempt\":1,\"latency_ms\":5,\"error\":null,"
        "\"seq\":\"1795231200000:3:17\",\"event_key\":\"pytorch/pytorch#1\",\"at\":\"%s\","
        "\"maybe_duplicate\":false,\"action\":\"opened\",\"received_ms\":1795231200000}",
        call->delivery, call->number % 16, status, at);
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
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(c->multi, &left))) {
        struct call *call;
        long status = 0;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (code || status != 204)
            bench_die("%s, status %ld", curl_easy_strerror(code), status);
        curl_multi_remove_handle(c->multi, call->easy);
        put_outcome(c, call, status);
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
        curl_multi_perform(c->multi, &running);
        collect(c);
        rd_kafka_poll(c->writer, c->done < c->count ? 0 : 10);
        if (running)
            curl_multi_poll(c->multi, NULL, 0, 10, NULL);
    }
}

int main(int argc, char **argv)
{
    struct chain c = { 0 };
    if (argc != 8)
        bench_die("usage: bare_chain BROKERS FROM TO URL COUNT IN_FLIGHT PER_RECORD");
    c.to = argv[3];
    c.url = argv[4];
    c.count = bench_number(argv[5], 1);
    c.n_idle = bench_number(argv[6], 1);
    c.per_record = bench_number(argv[7], 1);
    memset(c.token, 'x', TOKEN_LEN);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    c.multi = curl_multi_init();
    c.headers = curl_slist_append(c.headers, "Content-Type: application/json");
    c.headers = curl_slist_append(c.headers, "Accept: application/vnd.github+json");
    c.headers = curl_slist_append(c.headers, "Authorization: Bearer ghs_bench");
    c.headers = curl_slist_append(c.headers, "User-Agent: bare_chain");
    long n_calls = c.n_idle;
    c.calls = mem_alloc((size_t)n_calls, sizeof(*c.calls));
    c.idle = mem_alloc((size_t)n_calls, sizeof(struct call *));
    for (long i = 0; i < n_calls; i++) {
        c.calls[i] = (struct call){ .easy = curl_easy_init() };
        buf_init(&c.calls[i].body, 1 << 20);
        c.idle[i] = &c.calls[i];
    }
    c.reader = reader_new(argv[1], argv[2]);
    c.writer = writer_new(&c, argv[1]);
    int64_t cpu_us = bench_cpu_us(), started_us = clock_mono_us();

    run(&c);
    printf("{\"calls\":%ld,\"seconds\":%.6f,\"cpu_us\":%" PRId64 "}\n", c.done,
           (double)(clock_mono_us() - started_us) / 1e6, bench_cpu_us() - cpu_us);
    for (long i = 0; i < n_calls; i++) {
        curl_easy_cleanup(c.calls[i].easy);
        buf_clear(&c.calls[i].body);
    }
    if (c.record)
        rd_kafka_message_destroy(c.record);
    rd_kafka_consumer_close(c.reader);
    rd_kafka_destroy(c.reader);
    rd_kafka_destroy(c.writer);
    curl_multi_cleanup(c.multi);
    curl_slist_free_all(c.headers);
    curl_global_cleanup();
    free(c.calls);
    free(c.idle);
    return 0;
}

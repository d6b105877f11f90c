#include "topic_writer.h"

#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_writer_inner.h"

#define MESSAGE_TIMEOUT_MS 7000
#define THREAD_POLL_MS     200 /* how long topic_writer_free waits for the thread at most */
#define LATE_REPORT_MS     2000
#define FLUSH_STEP_MS      100 /* a broken producer is replaced between */

/* Goes with each message whose writer wants to know, or says where it belongs. */
struct report {
    topic_written_fn *done; /* may be NULL */
    void *opaque;
    int place; /* 0: by its key */
};

/* Without compression the broker, the disk and every consumer handle more bytes; with it ingest
 * spends about as much on a webhook again. librdkafka lingers for 5 ms, which whoever waits for an
 * acknowledgement feels; under load batches fill while others are on their way. The operator may
 * choose (CRCR_KAFKA_*). */
static const topic_setting writer_defaults[] = {
    { "queue.buffering.max.kbytes", "65536" },
    { "compression.type", "none" },
    { "linger.ms", "1" },
    { NULL, NULL },
};

/* What the broker said, and what follows from it; all else leaves unknown what happened. Refused is
 * only what is wrong with this one record: where we may not write yet, or what is not there yet, is
 * no reason to give a record up. */
static const struct {
    rd_kafka_resp_err_t said;
    enum err err;
} answers[] = {
    { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, ERR_REFUSE },
    { RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, ERR_REFUSE },
    { RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, ERR_REFUSE },
    { RD_KAFKA_RESP_ERR_INVALID_RECORD, ERR_REFUSE },
    { RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, ERR_RETRY }, /* our clock is wrong, not the record */
    { RD_KAFKA_RESP_ERR_POLICY_VIOLATION, ERR_REFUSE },
    { RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, ERR_RETRY },
    { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, ERR_RETRY },
    { RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, ERR_RETRY },
    { RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, ERR_RETRY },
    { RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, ERR_RETRY },
};

static enum err err_of(rd_kafka_resp_err_t said, enum err otherwise)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (answers[i].said == said)
            return answers[i].err;
    return otherwise;
}

/* librdkafka takes a record for stored, without an offset, when its batch failed and a later one of
 * its partition was acknowledged: the broker would have refused a gap in the sequence numbers. A
 * broker that knows nothing of the producer yet takes any number, so that what it refused while a
 * leader moved is lost (https://github.com/confluentinc/confluent-kafka-go/issues/921). */
static bool is_only_inferred(const rd_kafka_message_t *message)
{
    return !message->err && message->offset < 0;
}

static const char *reason_of(rd_kafka_t *rk, const rd_kafka_message_t *message, char *fatal,
                             size_t size)
{
    if (is_only_inferred(message))
        return "not known to be stored: a later record of its partition is";
    if (message->err && rd_kafka_fatal_error(rk, fatal, size))
        return fatal; /* rather than "purged" */
    /* Not rd_kafka_message_errstr: for a producer that is the value, and not even terminated. */
    return message->err ? rd_kafka_err2str(message->err) : NULL;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct topic_writer *w = opaque;
    struct report *report = message->_private;
    char fatal[256];

    atomic_fetch_add(&w->served, 1);
    if (!message->err)
        atomic_store(&w->stored, true);
    if (message->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
        topic_writer_late(w, clock_mono_ms());
    if (!report || !report->done) {
        free(report);
        return;
    }
    struct topic_position at = { .topic = rd_kafka_topic_name(message->rkt),
                                 .partition = message->partition,
                                 .offset = message->offset };
    enum err err = OK;
    if (message->err || is_only_inferred(message))
        err = err_of(message->err, ERR_UNKNOWN);
    report->done(report->opaque, err, &at, reason_of(rk, message, fatal, sizeof(fatal)));
    free(report);
}

/* How many partitions there are only librdkafka knows at the moment of writing. */
static int32_t partition_of(const rd_kafka_topic_t *topic, const void *key, size_t key_len,
                            int32_t n, void *topic_opaque, void *message_opaque)
{
    const struct report *report = message_opaque;

    if (report && report->place)
        return report->place < n ? report->place - 1 : n - 1;
    return rd_kafka_msg_partitioner_murmur2_random(topic, key, key_len, n, topic_opaque,
                                                   message_opaque);
}

static void *thread_main(void *opaque)
{
    struct topic_writer *w = opaque;

    while (!atomic_load(&w->stop)) {
        rd_kafka_poll(w->client.rk, THREAD_POLL_MS);
        topic_writer_renew(w);
    }
    return NULL;
}

/* When the network is whole again the kernel would send what was given up long ago. */
static int open_socket(int domain, int type, int protocol, void *opaque)
{
    const struct topic_writer *w = opaque;
    int fd = socket(domain, type | SOCK_CLOEXEC, protocol);

    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &w->user_timeout_ms,
                         sizeof(w->user_timeout_ms));
    return fd;
}

static enum err writer_open(struct topic_writer *w, const struct topic_writer_options *options,
                            struct why *why)
{
    char timeout[16], linger[16];
    int timeout_ms = options->message_timeout_ms ? options->message_timeout_ms : MESSAGE_TIMEOUT_MS;
    int linger_ms = options->linger_ms < 0 ? 0 : options->linger_ms;
    rd_kafka_conf_t *conf;

    snprintf(timeout, sizeof(timeout), "%d", timeout_ms);
    snprintf(linger, sizeof(linger), "%d", linger_ms);
    const topic_setting fixed[] = {
        { "enable.idempotence", "true" },
        { "acks", "all" },
        { "max.in.flight", "5" },                 /* as many as idempotence allows */
        { "partitioner", "murmur2_random" },      /* partition_of goes before it … */
        { "sticky.partitioning.linger.ms", "0" }, /* … and else is not asked without a key */
        { "message.max.bytes", TOPIC_MESSAGE_MAX_BYTES },
        { "message.timeout.ms", timeout },
        { options->linger_ms ? "linger.ms" : NULL, linger },
        { NULL, NULL },
    };
    enum err err =
        topic_client_configure(&w->client, &options->kafka, writer_defaults, fixed, &conf, why);
    if (err)
        return err;
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    w->timeout_ms = timeout_ms;
    w->user_timeout_ms = (unsigned)options->message_timeout_ms;
    if (w->user_timeout_ms)
        rd_kafka_conf_set_socket_cb(conf, open_socket);
    rd_kafka_topic_conf_set_partitioner_cb(rd_kafka_conf_get_default_topic_conf(conf),
                                           partition_of);
    w->conf = conf;
    return topic_writer_open(w, why);
}

static enum err writer_serve(struct topic_writer *w, const struct topic_writer_options *options,
                             struct why *why)
{
    if (options->own_thread) {
        w->has_thread = !pthread_create(&w->thread, NULL, thread_main, w);
        if (!w->has_thread)
            return why_set(why, ERR_STOP, "cannot start the writer's thread");
        return OK;
    }
    w->wake = options->wake;
    topic_writer_arm(w);
    return OK;
}

enum err topic_writer_new(struct topic_writer **ret, const struct topic_writer_options *options,
                          struct why *why)
{
    struct topic_writer *w = mem_alloc(1, sizeof(*w));

    topic_client_init(&w->client, &options->kafka);
    pthread_mutex_init(&w->swap, NULL);
    enum err err = writer_open(w, options, why);
    if (!err)
        err = writer_serve(w, options, why);
    if (err) {
        topic_writer_free(w);
        return err;
    }
    *ret = w;
    return OK;
}

void topic_writer_free(struct topic_writer *w)
{
    if (!w)
        return;
    if (w->has_thread) {
        atomic_store(&w->stop, true);
        pthread_join(w->thread, NULL);
    }
    topic_writer_close(w->retired, w->retired_reports);
    topic_writer_close(w->client.rk, w->reports);
    if (w->conf)
        rd_kafka_conf_destroy(w->conf);
    pthread_mutex_destroy(&w->swap);
    topic_client_clear(&w->client);
    free(w);
}

static rd_kafka_headers_t *headers_out(const struct headers *from)
{
    if (!from || !from->n)
        return NULL;
    rd_kafka_headers_t *to = rd_kafka_headers_new(from->n);
    for (size_t i = 0; i < from->n; i++) {
        const struct header *h = &from->at[i];
        rd_kafka_header_add(to, h->name.ptr, (ssize_t)h->name.len, h->value.ptr,
                            (ssize_t)h->value.len);
    }
    return to;
}

static enum err produce_failed(struct topic_writer *w, const char *topic, rd_kafka_error_t *error,
                               struct why *why)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    enum err err = err_of(code, ERR_RETRY);

    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        (void)why_set(why, err, "the queue to Kafka is full (%zu records wait)",
                      topic_writer_pending(w));
    else if (topic_writer_fatal(w, why))
        err = ERR_STOP;
    else
        (void)why_set(why, err, "cannot queue for topic %s: %s", topic,
                      rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return err;
}

/* flags: RD_KAFKA_MSG_F_COPY or RD_KAFKA_MSG_F_FREE. */
static enum err produce(struct topic_writer *w, const char *topic, struct str key, void *value,
                        size_t value_len, int flags, const struct headers *headers,
                        struct report want, struct why *why)
{
    rd_kafka_headers_t *out = headers_out(headers);
    struct report *report = NULL;

    if (want.done || want.place) {
        report = mem_alloc(1, sizeof(*report));
        *report = want;
    }
    const rd_kafka_vu_t vus[] = {
        { .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic },
        { .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)key.ptr, key.len } },
        { .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { value, value_len } },
        { .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = flags },
        { .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = report },
        { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = out },
    };
    size_t n = sizeof(vus) / sizeof(*vus);
    rd_kafka_error_t *error = rd_kafka_produceva(topic_writer_hold(w), vus, out ? n : n - 1);
    topic_writer_let_go(w);
    if (!error)
        return OK;
    if (out)
        rd_kafka_headers_destroy(out);
    free(report);
    return produce_failed(w, topic, error, why);
}

enum err topic_writer_put(struct topic_writer *w, const char *topic, struct str key,
                          struct str value, const struct headers *headers, topic_written_fn *done,
                          void *opaque, struct why *why)
{
    return topic_writer_put_in(w, topic, 0, key, value, headers, done, opaque, why);
}

enum err topic_writer_put_in(struct topic_writer *w, const char *topic, int place, struct str key,
                             struct str value, const struct headers *headers,
                             topic_written_fn *done, void *opaque, struct why *why)
{
    return produce(w, topic, key, (void *)value.ptr, value.len, RD_KAFKA_MSG_F_COPY, headers,
                   (struct report){ done, opaque, place }, why);
}

enum err topic_writer_give(struct topic_writer *w, const char *topic, struct str key, char *value,
                           size_t value_len, const struct headers *headers, topic_written_fn *done,
                           void *opaque, struct why *why)
{
    return produce(w, topic, key, value, value_len, RD_KAFKA_MSG_F_FREE, headers,
                   (struct report){ done, opaque, 0 }, why);
}

/* One put_wait under way; the report comes on this or on the writer's thread. Of two who are
 * through with it the second frees it. */
struct waiter {
    atomic_bool left; /* by one of them */
    enum err err;
    struct topic_position at;
    char reason[256];
};

static void on_waited(void *opaque, enum err err, const struct topic_position *at,
                      const char *reason)
{
    struct waiter *waiter = opaque;

    waiter->err = err;
    waiter->at = *at;
    snprintf(waiter->reason, sizeof(waiter->reason), "%s", reason ? reason : "");
    if (atomic_exchange(&waiter->left, true))
        free(waiter);
}

/* librdkafka reports each record after message.timeout.ms, unless the thread that should waits for
 * a name server itself. */
static enum err wait_for(struct topic_writer *w, struct waiter *waiter, const char *topic,
                         struct topic_position *at, struct why *why)
{
    int64_t deadline = clock_mono_ms() + w->timeout_ms + LATE_REPORT_MS;

    while (!atomic_load(&waiter->left) && clock_mono_ms() < deadline) {
        rd_kafka_poll(topic_writer_hold(w), 10);
        topic_writer_let_go(w);
        if (!w->has_thread)
            topic_writer_renew(w);
    }
    if (!atomic_exchange(&waiter->left, true))
        return why_set(why, ERR_UNKNOWN, "topic %s: nothing was reported for %d ms", topic,
                       w->timeout_ms + LATE_REPORT_MS);
    enum err err = waiter->err;
    if (err)
        (void)why_set(why, err, "topic %s: %s", topic, waiter->reason);
    else if (at)
        *at = (struct topic_position){ topic, waiter->at.partition, waiter->at.offset };
    free(waiter);
    return err;
}

enum err topic_writer_put_wait(struct topic_writer *w, const char *topic, struct str key,
                               struct str value, const struct headers *headers,
                               struct topic_position *at, struct why *why)
{
    struct waiter *waiter = mem_alloc(1, sizeof(*waiter));
    enum err err = topic_writer_put(w, topic, key, value, headers, on_waited, waiter, why);

    if (!err)
        return wait_for(w, waiter, topic, at, why);
    free(waiter);
    if (!w->has_thread)
        topic_writer_renew(w); /* so that the next one has a chance */
    return err;
}

int topic_writer_poll(struct topic_writer *w, int timeout_ms)
{
    int before = atomic_load(&w->served);

    if (!w->has_thread) {
        rd_kafka_poll(w->client.rk, timeout_ms);
        topic_writer_renew(w);
    }
    return atomic_load(&w->served) - before;
}

static bool has_retired(struct topic_writer *w)
{
    pthread_mutex_lock(&w->swap);
    bool has = w->retired;
    pthread_mutex_unlock(&w->swap);
    return has;
}

enum err topic_writer_flush(struct topic_writer *w, int timeout_ms, struct why *why)
{
    int64_t deadline = clock_mono_ms() + timeout_ms, left = timeout_ms;

    do {
        int step_ms = left < FLUSH_STEP_MS ? (int)left : FLUSH_STEP_MS;
        bool all = !rd_kafka_flush(topic_writer_hold(w), step_ms);
        topic_writer_let_go(w);
        if (!w->has_thread) /* a broken one has nothing to wait for, and takes nothing any more */
            topic_writer_renew(w);
        if (all && !has_retired(w))
            return OK;
        left = deadline - clock_mono_ms();
    } while (left > 0);
    return why_set(why, ERR_UNKNOWN, "%zu records were not acknowledged by Kafka within %d ms",
                   topic_writer_pending(w), timeout_ms);
}

/* The topics that are asked for, ticked off as they are found. */
struct wanted {
    const char *const *topics;
    size_t n;
    bool *found;
};

static void tick_off(void *opaque, const char *topic, int partitions)
{
    struct wanted *wanted = opaque;

    (void)partitions;
    for (size_t i = 0; i < wanted->n; i++)
        if (!strcmp(wanted->topics[i], topic))
            wanted->found[i] = true;
}

static enum err name_missing(const struct wanted *wanted, struct why *why)
{
    struct buf names;
    enum err err = OK;

    buf_init(&names, 400);
    for (size_t i = 0; i < wanted->n; i++)
        if (!wanted->found[i])
            buf_printf(&names, "%s%s", names.len ? ", " : "", wanted->topics[i]);
    if (names.len)
        err = why_set(why, ERR_STOP,
                      "missing in Kafka: %.*s; `crcrctl topics create` makes the topics",
                      STR_ARG(buf_str(&names)));
    buf_clear(&names);
    return err;
}

enum err topic_writer_check(struct topic_writer *w, const char *const *topics, size_t n,
                            int timeout_ms, struct why *why)
{
    struct wanted wanted = { topics, n, mem_alloc(n, sizeof(bool)) };
    topic_writer_hold(w);
    enum err err = topic_client_topics(&w->client, timeout_ms, tick_off, &wanted, why);
    topic_writer_let_go(w);

    if (!err)
        err = name_missing(&wanted, why);
    free(wanted.found);
    return err;
}

size_t topic_writer_pending(struct topic_writer *w)
{
    pthread_mutex_lock(&w->swap);
    int n = rd_kafka_outq_len(w->client.rk) + (w->retired ? rd_kafka_outq_len(w->retired) : 0);
    pthread_mutex_unlock(&w->swap);
    return (size_t)n;
}

bool topic_writer_fatal(struct topic_writer *w, struct why *why)
{
    if (!atomic_load(&w->hopeless))
        return false;
    (void)why_set(why, ERR_STOP, "%s", w->broken.text); /* not written any more */
    return true;
}

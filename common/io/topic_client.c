#include "topic_client.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"

/* For every client; a producer ignores those for fetches. A broker that comes back is found within
 * 2 s (librdkafka: 10 s). */
static const topic_setting common_settings[] = {
    { "reconnect.backoff.ms", "100" },
    { "reconnect.backoff.max.ms", "2000" },
    { "socket.nagle.disable", "true" },
    { "socket.keepalive.enable", "true" },
    { "statistics.interval.ms", "0" },
    /* One fetch is under way at a time: partitions that join or are resumed wait for the end of one
     * that asked the others, which have nothing; and the end of an empty one is known no sooner.
     * With 500 ms, librdkafka's own, catching up takes 2 s. With less than this, empty fetches are
     * most of what an idle daemon does. A record that comes ends a fetch at once. */
    { "fetch.wait.max.ms", "200" },
    /* TOPIC_MESSAGE_MAX_BYTES and what the protocol adds to a fetch response. */
    { "receive.message.max.bytes", "28311552" },
    { NULL, NULL },
};

const topic_setting topic_consumer_fixed[] = {
    { "enable.auto.commit", "false" },       { "enable.auto.offset.store", "false" },
    { "auto.offset.reset", "earliest" }, /* also when retention removed the beginning meanwhile */
    { "enable.partition.eof", "true" },  /* says how far an idle partition was read */
    { "allow.auto.create.topics", "false" }, { NULL, NULL },
};

static const char *remedy_of(int err, const char *reason)
{
    /* A failed handshake may come as a failed transport; its text names the state. */
    if (err == RD_KAFKA_RESP_ERR__SSL || strstr(reason, "state SSL_HANDSHAKE"))
        return "set CRCR_KAFKA_SSL_CA_LOCATION to the authority that signed the brokers' "
               "certificates";
    if (err == RD_KAFKA_RESP_ERR__AUTHENTICATION)
        return "set CRCR_KAFKA_SASL_USERNAME, CRCR_KAFKA_SASL_PASSWORD, CRCR_KAFKA_SASL_MECHANISMS";
    return "is it running? set KAFKA_BROKERS";
}

void topic_client_clear(struct topic_client *c)
{
    if (!c->brokers)
        return;
    if (c->rk)
        rd_kafka_destroy_flags(c->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    free(c->brokers);
    c->brokers = NULL;
    pthread_mutex_destroy(&c->lock);
}

void topic_client_trouble(struct topic_client *c, const char *text)
{
    pthread_mutex_lock(&c->lock);
    snprintf(c->trouble, sizeof(c->trouble), "%s", text);
    pthread_mutex_unlock(&c->lock);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
    struct topic_client *c = opaque;
    char fatal[256];

    if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        atomic_store(&c->unavailable, true);
        return; /* says less than the brokers' errors before it */
    }
    if (err == RD_KAFKA_RESP_ERR__FATAL) {
        rd_kafka_fatal_error(rk, fatal, sizeof(fatal));
        reason = fatal;
    }
    topic_client_trouble(c, reason);
    pthread_mutex_lock(&c->lock);
    c->remedy = remedy_of(err, reason);
    pthread_mutex_unlock(&c->lock);
}

/* n: at most; the last one of ours has a NULL name. */
static enum err conf_set(rd_kafka_conf_t *conf, const topic_setting *settings, size_t n,
                         struct why *why)
{
    char text[256];

    for (size_t i = 0; i < n && settings[i].name; i++)
        if (rd_kafka_conf_set(conf, settings[i].name, settings[i].value, text, sizeof(text)))
            return why_set(why, ERR_STOP, "Kafka property %s=%s: %s", settings[i].name,
                           settings[i].value, text);
    return OK;
}

enum err topic_client_configure(struct topic_client *c, const struct kafka_options *options,
                                const topic_setting *defaults, const topic_setting *fixed,
                                struct rd_kafka_conf_s **ret, struct why *why)
{
    const topic_setting identity[] = {
        { "bootstrap.servers", options->brokers ? options->brokers : "" },
        { options->client_id ? "client.id" : NULL, options->client_id },
        { NULL, NULL },
    };
    const struct {
        const topic_setting *at;
        size_t n;
    } all[] = {
        { common_settings, SIZE_MAX },
        { defaults, SIZE_MAX },
        { options->properties, options->n_properties },
        { identity, SIZE_MAX },
        { fixed, SIZE_MAX },
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    c->brokers = mem_dup(identity[0].value);
    c->remedy = remedy_of(0, "");
    pthread_mutex_init(&c->lock, NULL);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        enum err err = conf_set(conf, all[i].at, all[i].n, why);
        if (err) {
            rd_kafka_conf_destroy(conf);
            return err;
        }
    }
    /* Only consumers have it, from librdkafka 2.2 on. Before that one that finds its queue full
     * (queued.max.messages.kbytes, queued.min.messages) looks again after up to a second: of a
     * backlog it reads about 1,300 records or 7 MB a second from each broker. */
    rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "10", NULL, 0);
    rd_kafka_conf_set_opaque(conf, c);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, NULL);
    *ret = conf;
    return OK;
}

/* Before each of its timers, two or three a second, librdkafka's main thread spins for what is left
 * of a millisecond (before 2.4; its issue 4684): most of what an idle daemon would do. Woken up to
 * a millisecond late it does not. */
static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk, rd_kafka_thread_type_t type,
                                           const char *name, void *opaque)
{
    (void)rk, (void)name, (void)opaque;
    /* ns; a thread has its creator's, and 50,000 is the kernel's default */
    prctl(PR_SET_TIMERSLACK, type == RD_KAFKA_THREAD_MAIN ? 1000000UL : 50000UL, 0, 0, 0);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque,
                                  char *text, size_t size)
{
    (void)conf, (void)opaque, (void)text, (void)size;
    return rd_kafka_interceptor_add_on_thread_start(rk, "slack", on_thread_start, NULL);
}

enum err topic_client_open(struct topic_client *c, bool producer, struct rd_kafka_conf_s *conf,
                           struct why *why)
{
    char text[256];

    rd_kafka_conf_interceptor_add_on_new(conf, "slack", on_new, NULL); /* a copy of conf has none */
    c->rk =
        rd_kafka_new(producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (c->rk)
        return OK;
    rd_kafka_conf_destroy(conf);
    return why_set(why, ERR_STOP, "cannot set up the Kafka client: %s", text);
}

enum err topic_client_open_groupless(struct topic_client *c, const struct kafka_options *options,
                                     const topic_setting *defaults, struct why *why)
{
    static const topic_setting whole_topics[] = {
        { "queued.max.messages.kbytes", "16384" },
        { "fetch.message.max.bytes", "1048576" },
        { NULL, NULL },
    };
    rd_kafka_conf_t *conf;
    enum err err = topic_client_configure(c, options, defaults ? defaults : whole_topics,
                                          topic_consumer_fixed, &conf, why);

    if (err)
        return err;
    /* librdkafka wants one; nothing is joined or committed under it */
    rd_kafka_conf_set(conf, "group.id", "crcr", NULL, 0);
    return topic_client_open(c, false, conf, why);
}

enum err topic_client_unreachable(struct topic_client *c, struct why *why)
{
    pthread_mutex_lock(&c->lock);
    enum err err = why_set(why, ERR_RETRY, "cannot reach Kafka at %s%s%s: %s", c->brokers,
                           c->trouble[0] ? ": " : "", c->trouble, c->remedy);
    pthread_mutex_unlock(&c->lock);
    return err;
}

bool topic_client_fatal(struct topic_client *c, struct why *why)
{
    char text[256];
    rd_kafka_resp_err_t err = rd_kafka_fatal_error(c->rk, text, sizeof(text));

    if (!err)
        return false;
    (void)why_set(why, ERR_STOP, "Kafka client: fatal error %s: %s", rd_kafka_err2name(err), text);
    return true;
}

rd_kafka_message_t *topic_client_poll(struct topic_client *c, int64_t until_ms)
{
    for (;;) {
        int64_t wait = until_ms - clock_mono_ms();
        rd_kafka_message_t *message = rd_kafka_consumer_poll(c->rk, wait > 0 ? (int)wait : 0);
        if (!message || !message->err || message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            return message;
        topic_client_trouble(c, rd_kafka_message_errstr(message));
        rd_kafka_message_destroy(message);
    }
}

void topic_client_record(const rd_kafka_message_t *message, struct record *record)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len;

    record->at = (struct topic_position){ .topic = rd_kafka_topic_name(message->rkt),
                                          .partition = message->partition,
                                          .offset = message->offset };
    record->timestamp_ms = rd_kafka_message_timestamp(message, NULL);
    record->key = (struct str){ message->key, message->key_len };
    record->value = (struct str){ message->payload, message->len };
    headers_init(&record->headers);
    if (rd_kafka_message_headers(message, &headers))
        return;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &len); i++)
        if (!headers_put_str(&record->headers, str_of(name),
                             (struct str){ value ? value : "", len }))
            return;
}

void topic_client_wake(rd_kafka_queue_t *queue, const struct wake *wake)
{
    static const uint64_t one = 1; /* an eventfd takes 8 bytes */

    rd_kafka_queue_io_event_enable(queue, wake->fd, &one, sizeof(one));
}

void topic_client_pause(struct topic_client *c, const char *topic, int32_t partition, bool pause)
{
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(one, topic, partition);
    if (pause)
        rd_kafka_pause_partitions(c->rk, one);
    else
        rd_kafka_resume_partitions(c->rk, one);
    rd_kafka_topic_partition_list_destroy(one);
}

enum err topic_client_metadata(struct topic_client *c, int timeout_ms,
                               const struct rd_kafka_metadata **ret, struct why *why)
{
    if (!rd_kafka_metadata(c->rk, 1, NULL, ret, timeout_ms))
        return OK;
    rd_kafka_poll(c->rk, 0); /* collects the reason */
    return topic_client_unreachable(c, why);
}

int topic_client_partition_count(const struct rd_kafka_metadata *metadata, const char *topic)
{
    for (int i = 0; i < metadata->topic_cnt; i++)
        if (!metadata->topics[i].err && !strcmp(metadata->topics[i].topic, topic))
            return metadata->topics[i].partition_cnt;
    return 0;
}

enum err topic_client_partitions(struct topic_client *c, const char *const *topics, size_t n,
                                 int timeout_ms, rd_kafka_topic_partition_list_t *list,
                                 struct why *why)
{
    const struct rd_kafka_metadata *metadata;
    struct buf CLEANUP(buf_clear) missing;

    buf_init(&missing, 400);
    enum err err = topic_client_metadata(c, timeout_ms, &metadata, why);
    if (err)
        return err;
    for (size_t i = 0; i < n; i++) {
        int partitions = topic_client_partition_count(metadata, topics[i]);
        if (partitions && list)
            rd_kafka_topic_partition_list_add_range(list, topics[i], 0, partitions - 1);
        if (!partitions)
            buf_printf(&missing, "%s%s", missing.len ? ", " : "", topics[i]);
    }
    rd_kafka_metadata_destroy(metadata);
    return !missing.len
               ? OK
               : why_set(why, ERR_STOP,
                         "missing in Kafka: %.*s; `crcrctl topics create` makes the topics",
                         STR_ARG(buf_str(&missing)));
}

bool topic_client_is_mock(struct topic_client *c, int timeout_ms)
{
    char *id = rd_kafka_clusterid(c->rk, timeout_ms);
    bool is = id && str_starts(str_of(id), "mockCluster");

    rd_kafka_mem_free(c->rk, id);
    return is;
}

/* ListOffsets of one kind: the list's offsets become where, and then the answers. */
static enum err ask_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t where,
                         int timeout_ms, struct why *why)
{
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = where;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(rk, list, timeout_ms);
    const rd_kafka_topic_partition_t *first = &list->elems[0], *last = &list->elems[list->cnt - 1];
    if (code) /* for all of them; librdkafka does not say which one failed */
        return why_set(why, ERR_RETRY,
                       "cannot get the ends of the %d partitions of %s%s: %s: is each one's leader "
                       "running?",
                       list->cnt, first->topic, strcmp(first->topic, last->topic) ? ", …" : "",
                       rd_kafka_err2str(code));
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        if (t->err || t->offset < 0)
            return why_set(why, ERR_RETRY, "cannot get the end of %s [%d]: %s", t->topic,
                           (int)t->partition,
                           t->err ? rd_kafka_err2str(t->err) : "Kafka did not say");
    }
    return OK;
}

enum err topic_client_ends(struct topic_client *c, const rd_kafka_topic_partition_list_t *of,
                           int timeout_ms, struct topic_end *ends, struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(of);
    enum err err = ask_ends(c->rk, list, RD_KAFKA_OFFSET_BEGINNING, timeout_ms, why);

    for (int i = 0; !err && i < of->cnt; i++)
        ends[i].first = list->elems[i].offset;
    if (!err)
        err = ask_ends(c->rk, list, RD_KAFKA_OFFSET_END, timeout_ms, why);
    for (int i = 0; !err && i < of->cnt; i++)
        ends[i].end = list->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

enum err topic_client_offsets_at_times(struct topic_client *c,
                                       rd_kafka_topic_partition_list_t *list, int timeout_ms,
                                       struct why *why)
{
    if (topic_client_is_mock(c, timeout_ms)) {
        for (int i = 0; i < list->cnt; i++)
            list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
        return OK;
    }
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].err = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(c->rk, list, timeout_ms);
    for (int i = 0; !code && i < list->cnt; i++)
        code = list->elems[i].err;
    return code ? why_set(why, ERR_RETRY, "cannot find offsets by time: %s", rd_kafka_err2str(code))
                : OK;
}

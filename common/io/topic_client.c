#include "topic_client.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/mem.h"

/* For every client. A broker that comes back is found within 2 s (librdkafka: 10 s). */
static const topic_setting common_settings[] = {
    { "reconnect.backoff.ms", "100" },  { "reconnect.backoff.max.ms", "2000" },
    { "socket.nagle.disable", "true" }, { "socket.keepalive.enable", "true" },
    { "statistics.interval.ms", "0" },  { NULL, NULL },
};

static const char *const is_it_running = "is it running? set KAFKA_BROKERS";

static const struct {
    rd_kafka_resp_err_t err;
    const char *remedy;
} remedies[] = {
    { RD_KAFKA_RESP_ERR__AUTHENTICATION,
      "set CRCR_KAFKA_SASL_USERNAME, CRCR_KAFKA_SASL_PASSWORD, CRCR_KAFKA_SASL_MECHANISMS" },
    { RD_KAFKA_RESP_ERR__SSL, "set CRCR_KAFKA_SSL_CA_LOCATION to the authority that signed the "
                              "brokers' certificates" },
};

/* A failed handshake may come as a failed transport; its text names the state. */
static const char *remedy_of(int err, const char *reason)
{
    if (strstr(reason, "state SSL_HANDSHAKE"))
        err = RD_KAFKA_RESP_ERR__SSL;
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
        if ((int)remedies[i].err == err)
            return remedies[i].remedy;
    return is_it_running;
}

void topic_client_init(struct topic_client *c, const struct kafka_options *options)
{
    c->rk = NULL;
    c->brokers = mem_dup(options->brokers ? options->brokers : "");
    c->trouble[0] = '\0';
    c->remedy = is_it_running;
    c->unavailable = false;
    pthread_mutex_init(&c->lock, NULL);
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

void topic_client_answered(struct topic_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->unavailable = false;
    pthread_mutex_unlock(&c->lock);
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
        pthread_mutex_lock(&c->lock);
        c->unavailable = true; /* its text says less than the errors of the brokers before it */
        pthread_mutex_unlock(&c->lock);
        return;
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

static enum err conf_set(rd_kafka_conf_t *conf, const char *name, const char *value,
                         struct why *why)
{
    char text[256];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
        return OK;
    return why_set(why, ERR_STOP, "Kafka property %s=%s: %s", name, value, text);
}

static enum err conf_set_all(rd_kafka_conf_t *conf, const topic_setting *settings, struct why *why)
{
    enum err err = OK;

    for (; !err && settings->name; settings++)
        err = conf_set(conf, settings->name, settings->value, why);
    return err;
}

static enum err conf_fill(rd_kafka_conf_t *conf, const struct kafka_options *options,
                          const topic_setting *defaults, const topic_setting *fixed,
                          struct why *why)
{
    enum err err = conf_set_all(conf, common_settings, why);

    if (!err)
        err = conf_set_all(conf, defaults, why);
    for (size_t i = 0; !err && i < options->n_properties; i++)
        err = conf_set(conf, options->properties[i].name, options->properties[i].value, why);
    if (!err)
        err = conf_set(conf, "bootstrap.servers", options->brokers ? options->brokers : "", why);
    if (!err && options->client_id)
        err = conf_set(conf, "client.id", options->client_id, why);
    if (!err)
        err = conf_set_all(conf, fixed, why);
    return err;
}

enum err topic_client_configure(struct topic_client *c, const struct kafka_options *options,
                                const topic_setting *defaults, const topic_setting *fixed,
                                struct rd_kafka_conf_s **ret, struct why *why)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum err err = conf_fill(conf, options, defaults, fixed, why);

    if (err) {
        rd_kafka_conf_destroy(conf);
        return err;
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

enum err topic_client_open(struct topic_client *c, bool producer, struct rd_kafka_conf_s *conf,
                           struct why *why)
{
    char text[256];

    c->rk =
        rd_kafka_new(producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (c->rk)
        return OK;
    rd_kafka_conf_destroy(conf);
    return why_set(why, ERR_STOP, "cannot set up the Kafka client: %s", text);
}

enum err topic_client_open_groupless(struct topic_client *c, const struct kafka_options *options,
                                     struct why *why)
{
    /* A partition that joins while a fetch is waiting must wait for it too, and the end of an empty
     * one is known no sooner: with 500 ms, librdkafka's own, catching up takes 2 s. */
    static const topic_setting defaults[] = {
        { "fetch.wait.max.ms", "100" },
        { "queued.max.messages.kbytes", "16384" },
        { "fetch.message.max.bytes", "1048576" },
        { "receive.message.max.bytes", TOPIC_RECEIVE_MAX_BYTES },
        { NULL, NULL },
    };
    static const topic_setting fixed[] = {
        { "group.id", "crcr" }, /* librdkafka wants one; nothing is joined or committed under it */
        { "enable.auto.commit", "false" },
        { "enable.auto.offset.store", "false" },
        { "auto.offset.reset", "earliest" }, /* retention took the beginning away meanwhile */
        { "enable.partition.eof", "true" },
        { "allow.auto.create.topics", "false" },
        { NULL, NULL },
    };
    rd_kafka_conf_t *conf;
    enum err err = topic_client_configure(c, options, defaults, fixed, &conf, why);

    if (!err)
        err = topic_client_open(c, false, conf, why);
    if (!err)
        rd_kafka_poll_set_consumer(c->rk);
    return err;
}

enum err topic_client_unreachable(struct topic_client *c, struct why *why)
{
    char trouble[sizeof(c->trouble)];
    const char *remedy;

    pthread_mutex_lock(&c->lock);
    snprintf(trouble, sizeof(trouble), "%s", c->trouble);
    remedy = c->remedy;
    pthread_mutex_unlock(&c->lock);
    return why_set(why, ERR_RETRY, "cannot reach Kafka at %s%s%s: %s", c->brokers,
                   trouble[0] ? ": " : "", trouble, remedy);
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

static void fill_headers(struct headers *to, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len;

    headers_init(to);
    if (rd_kafka_message_headers(message, &headers))
        return;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &len); i++)
        if (!headers_put_str(to, str_of(name), (struct str){ value ? value : "", len }))
            return;
}

void topic_client_record(const rd_kafka_message_t *message, struct record *record)
{
    record->at = (struct topic_position){ .topic = rd_kafka_topic_name(message->rkt),
                                          .partition = message->partition,
                                          .offset = message->offset };
    record->timestamp_ms = rd_kafka_message_timestamp(message, NULL);
    record->key = (struct str){ message->key, message->key_len };
    record->value = (struct str){ message->payload, message->len };
    fill_headers(&record->headers, message);
}

enum err topic_client_metadata(struct topic_client *c, int timeout_ms,
                               const struct rd_kafka_metadata **ret, struct why *why)
{
    if (!rd_kafka_metadata(c->rk, 1, NULL, ret, timeout_ms))
        return OK;
    rd_kafka_poll(c->rk, 0); /* collects the reason */
    return topic_client_unreachable(c, why);
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
        int partitions = 0;
        for (int k = 0; k < metadata->topic_cnt; k++)
            if (!metadata->topics[k].err && !strcmp(metadata->topics[k].topic, topics[i]))
                partitions = metadata->topics[k].partition_cnt;
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

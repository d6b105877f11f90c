#include "topic_writer.h"

#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"

#define MESSAGE_TIMEOUT_MS 7000
#define THREAD_POLL_MS     200   /* how long topic_writer_free waits for the thread at most */
#define FLUSH_STEP_MS      100   /* a broken producer is replaced between */
#define CLOSE_MS           1000  /* for the reports of what topic_writer_free purges */
#define LATE_MS            30000 /* records time out for so long: a new producer */
#define LATE_GAP_MS        15000 /* between two that belong together */
#define STUCK_MS           30000 /* a broken producer that has not reported all by then ends the daemon */

struct topic_writer {
    struct topic_client client; /* first: librdkafka's opaque; its rk may be replaced */
    rd_kafka_conf_t *conf;      /* of the next producer */
    unsigned user_timeout_ms;   /* TCP's; 0: the kernel's */
    struct wake *wake;          /* borrowed; may be NULL */
    bool has_thread;
    atomic_bool stop;
    pthread_t thread;
    pthread_rwlock_t use; /* held by who is in a call of client.rk: to read; by renew: to write */
    atomic_bool stored;   /* something, since a producer was refused */
    atomic_llong late_since_ms; /* monotonic: the first of the records that timed out … */
    atomic_llong late_ms;       /* … and the last; 0: none */
    atomic_bool broken;         /* nothing more is put into it */
    atomic_bool hopeless;       /* it is broken, and another one would be */
    struct why reason;          /* why it is broken; the polling thread's */
    int64_t broken_ms;          /* monotonic: since when; the polling thread's */
};

/* Goes with a message that has a callback or a fixed partition. */
struct write_report {
    topic_written_fn *done; /* may be NULL */
    void *opaque;
    int slot; /* the partition, from 1; 0: by its key */
};

/* The broker's error, and ours. Any other leaves unknown what happened. REFUSE only if this one
 * record is wrong: a missing right or topic is no reason to give a record up. */
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

/* ---- reports --------------------------------------------------------------------------------- */

/* Records that time out now and then are no reason to replace a producer. */
static void note_late(struct topic_writer *w, int64_t now_ms)
{
    if (now_ms - atomic_load(&w->late_ms) > LATE_GAP_MS)
        atomic_store(&w->late_since_ms, now_ms);
    atomic_store(&w->late_ms, now_ms);
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct topic_writer *w = opaque;
    struct write_report *report = message->_private;
    enum err err = OK;
    const char *reason = NULL;
    char fatal[256];

    if (!message->err)
        atomic_store(&w->stored, true);
    if (message->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
        note_late(w, clock_mono_ms());
    if (message->err) {
        err = err_of(message->err, ERR_UNKNOWN);
        /* Not rd_kafka_message_errstr: for a producer it points at the value, which is not even
         * terminated. The fatal error rather than "purged". */
        reason =
            rd_kafka_fatal_error(rk, fatal, sizeof(fatal)) ? fatal : rd_kafka_err2str(message->err);
    } else if (message->offset < 0) {
        /* librdkafka takes a record for stored, without an offset, when its batch failed and a
         * later one of its partition was acknowledged: the broker would have refused a gap in the
         * sequence numbers. A broker that knows nothing of the producer yet takes any number, so
         * that what it refused while a leader moved is lost
         * (https://github.com/confluentinc/confluent-kafka-go/issues/921). */
        err = ERR_UNKNOWN;
        reason = "not known to be stored: a later record of its partition is";
    }
    if (report && report->done) {
        struct topic_position at = { .topic = rd_kafka_topic_name(message->rkt),
                                     .partition = message->partition,
                                     .offset = message->offset };
        report->done(report->opaque, err, &at, reason);
    }
    free(report);
}

/* ---- the producer ---------------------------------------------------------------------------- */

/* Only librdkafka knows the number of partitions, at the moment of writing. */
static int32_t partition_of(const rd_kafka_topic_t *topic, const void *key, size_t key_len,
                            int32_t n, void *topic_opaque, void *message_opaque)
{
    const struct write_report *report = message_opaque;

    if (report && report->slot)
        return report->slot < n ? report->slot - 1 : n - 1;
    return rd_kafka_msg_partitioner_murmur2_random(topic, key, key_len, n, topic_opaque,
                                                   message_opaque);
}

/* Without the timeout the kernel would send, once the network is back, what was given up long ago.
 */
static int open_socket(int domain, int type, int protocol, void *opaque)
{
    const struct topic_writer *w = opaque;
    int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &w->user_timeout_ms,
                         sizeof(w->user_timeout_ms));
    return fd;
}

static enum err producer_open(struct topic_writer *w, struct why *why)
{
    enum err err = topic_client_open(&w->client, true, rd_kafka_conf_dup(w->conf), why);

    if (err)
        return err;
    if (w->wake) {
        rd_kafka_queue_t *reports = rd_kafka_queue_get_main(w->client.rk);
        topic_client_wake(reports, w->wake);
        rd_kafka_queue_destroy(reports); /* it wakes for as long as the producer is */
        rd_kafka_poll(w->client.rk, 0);  /* arms it */
    }
    return OK;
}

/* Whether there is a reason to replace the producer. */
static bool is_broken(struct topic_writer *w)
{
    if (topic_client_fatal(&w->client, &w->reason)) {
        /* Refused before it stored anything (no right to write): so would another be. */
        atomic_store(&w->hopeless, !atomic_exchange(&w->stored, false));
        return true;
    }
    if (atomic_load(&w->late_ms) - atomic_load(&w->late_since_ms) < LATE_MS)
        return false;
    (void)why_set(&w->reason, ERR_UNKNOWN, "Kafka client: records timed out for %d s on end",
                  LATE_MS / 1000);
    return true;
}

static void *destroy(void *rk)
{
    rd_kafka_destroy(rk);
    return NULL;
}

/* Replaces a broken producer once all its records are reported. On the polling thread, outside of
 * reports.
 *
 * librdkafka (2.0.2) ends an idempotent producer for good when a broker does not know the sequence
 * that it goes on with: one that hung for longer than message.timeout.ms and came back is enough
 * (OUT_OF_ORDER_SEQUENCE_NUMBER). All that was stored is stored, what was not acknowledged is
 * unknown, as after any time-out: a new producer can go on.
 *
 * A producer may also stick to a broker that no longer leads a partition (its pull request 5593):
 * its records time out while those for other partitions are stored. */
static void renew(struct topic_writer *w)
{
    rd_kafka_t *old = w->client.rk;
    pthread_t thread;
    if (!atomic_load(&w->broken)) {
        if (!is_broken(w))
            return;
        w->broken_ms = clock_mono_ms();
        atomic_store(&w->broken, true);
    }
    if (atomic_load(&w->hopeless))
        return;
    rd_kafka_purge(old, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                            RD_KAFKA_PURGE_F_NON_BLOCKING);
    if (pthread_rwlock_trywrlock(&w->use))
        return;
    bool empty = rd_kafka_outq_len(old) == 0;
    if (!empty && clock_mono_ms() - w->broken_ms > STUCK_MS) /* one of its threads hangs */
        atomic_store(&w->hopeless, true);
    if (empty && producer_open(w, &w->reason)) {
        w->client.rk = old;
        atomic_store(&w->hopeless, true);
        empty = false;
    }
    pthread_rwlock_unlock(&w->use);
    if (!empty)
        return;
    atomic_store(&w->late_ms, 0);
    atomic_store(&w->broken, false);
    /* On a thread of its own: it can take as long as a name server that does not answer. */
    if (pthread_create(&thread, NULL, destroy, old))
        destroy(old);
    else
        pthread_detach(thread);
}

static void *thread_main(void *opaque)
{
    struct topic_writer *w = opaque;
    while (!atomic_load(&w->stop)) {
        rd_kafka_poll(w->client.rk, THREAD_POLL_MS);
        renew(w);
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err topic_writer_new(struct topic_writer **ret, const struct topic_writer_options *options,
                          struct why *why)
{
    struct topic_writer *w = mem_alloc(1, sizeof(*w));
    char timeout[16];

    snprintf(timeout, sizeof(timeout), "%d",
             options->message_timeout_ms ? options->message_timeout_ms : MESSAGE_TIMEOUT_MS);
    /* Without compression the broker, the disk and every consumer handle more bytes; with it ingest
     * spends about as much on a webhook again. The operator may choose (CRCR_KAFKA_*). */
    const topic_setting defaults[] = {
        { "queue.buffering.max.kbytes", "65536" },
        { "compression.type", "none" },
        { "batch.size", TOPIC_BATCH_BYTES },
        { "linger.ms", options->lingers ? "5" : "0" },
        { NULL, NULL },
    };
    const topic_setting fixed[] = {
        { "enable.idempotence", "true" },
        { "acks", "all" },
        { "max.in.flight", "5" },                 /* as many as idempotence allows */
        { "partitioner", "murmur2_random" },      /* partition_of goes before it … */
        { "sticky.partitioning.linger.ms", "0" }, /* … and else is not asked without a key */
        { "message.max.bytes", TOPIC_MESSAGE_MAX_BYTES },
        { "message.timeout.ms", timeout },
        { NULL, NULL },
    };
    pthread_rwlock_init(&w->use, NULL);
    enum err err =
        topic_client_configure(&w->client, &options->kafka, defaults, fixed, &w->conf, why);
    if (!err) {
        rd_kafka_conf_set_dr_msg_cb(w->conf, on_report);
        rd_kafka_topic_conf_set_partitioner_cb(rd_kafka_conf_get_default_topic_conf(w->conf),
                                               partition_of);
        w->user_timeout_ms = (unsigned)options->message_timeout_ms;
        rd_kafka_conf_set_socket_cb(w->conf, open_socket);
        w->wake = options->own_thread ? NULL : options->wake;
        err = producer_open(w, why);
    }
    if (!err && options->own_thread) {
        w->has_thread = !pthread_create(&w->thread, NULL, thread_main, w);
        if (!w->has_thread)
            err = why_set(why, ERR_STOP, "cannot start the writer's thread");
    }
    if (err)
        topic_writer_free(w);
    else
        *ret = w;
    return err;
}

void topic_writer_free(struct topic_writer *w)
{
    if (!w)
        return;
    if (w->has_thread) {
        atomic_store(&w->stop, true);
        pthread_join(w->thread, NULL);
    }
    if (w->client.rk) {
        rd_kafka_purge(w->client.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_flush(w->client.rk, CLOSE_MS);
    }
    if (w->conf)
        rd_kafka_conf_destroy(w->conf);
    pthread_rwlock_destroy(&w->use);
    topic_client_clear(&w->client);
    free(w);
}

/* ---- writing --------------------------------------------------------------------------------- */

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

/* flags: RD_KAFKA_MSG_F_COPY, RD_KAFKA_MSG_F_FREE, or 0: value is borrowed until it is reported. */
static enum err produce(struct topic_writer *w, const struct new_record *record, int flags,
                        topic_written_fn *done, void *opaque, struct why *why)
{
    rd_kafka_headers_t *out = headers_out(record->headers);
    struct write_report *report = NULL;
    rd_kafka_error_t *error = NULL;
    enum err err;

    if (done || record->slot) {
        report = mem_alloc(1, sizeof(*report));
        *report = (struct write_report){ done, opaque, record->slot };
    }
    const rd_kafka_vu_t vus[] = {
        { .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = record->topic },
        { .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)record->key.ptr, record->key.len } },
        { .vtype = RD_KAFKA_VTYPE_VALUE,
          .u.mem = { (void *)record->value.ptr, record->value.len } },
        { .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = flags },
        { .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = report },
        { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = out },
    };
    size_t n = sizeof(vus) / sizeof(*vus);
    pthread_rwlock_rdlock(&w->use);
    bool broken = atomic_load(&w->broken);
    if (!broken)
        error = rd_kafka_produceva(w->client.rk, vus, out ? n : n - 1);
    pthread_rwlock_unlock(&w->use);
    if (!broken && !error)
        return OK;
    if (out)
        rd_kafka_headers_destroy(out);
    free(report);
    if (topic_writer_fatal(w, why))
        err = ERR_STOP;
    else if (broken)
        err = why_set(why, ERR_RETRY, "the producer for topic %s is being replaced", record->topic);
    else
        err = why_set(why, err_of(rd_kafka_error_code(error), ERR_RETRY),
                      "cannot queue for topic %s (%zu records wait): %s", record->topic,
                      topic_writer_pending(w), rd_kafka_error_string(error));
    if (error)
        rd_kafka_error_destroy(error);
    return err;
}

enum err topic_writer_put(struct topic_writer *w, const struct new_record *record,
                          topic_written_fn *done, void *opaque, struct why *why)
{
    return produce(w, record, RD_KAFKA_MSG_F_COPY, done, opaque, why);
}

enum err topic_writer_give(struct topic_writer *w, const struct new_record *record,
                           topic_written_fn *done, void *opaque, struct why *why)
{
    return produce(w, record, RD_KAFKA_MSG_F_FREE, done, opaque, why);
}

enum err topic_writer_lend(struct topic_writer *w, const struct new_record *record,
                           topic_written_fn *done, void *opaque, struct why *why)
{
    return produce(w, record, 0, done, opaque, why);
}

/* The report comes on this or on the writer's thread. */
struct waiter {
    atomic_bool reported;
    enum err err;
    struct topic_position at;
    struct why *why; /* of put_wait's caller; may be NULL */
};

static void on_waited(void *opaque, enum err err, const struct topic_position *at,
                      const char *reason)
{
    struct waiter *waiter = opaque;

    waiter->err = err;
    waiter->at = *at;
    if (err)
        (void)why_set(waiter->why, err, "topic %s: %s", at->topic, reason);
    atomic_store(&waiter->reported, true);
}

enum err topic_writer_put_wait(struct topic_writer *w, const char *topic, struct str key,
                               struct str value, const struct headers *headers,
                               struct topic_position *at, struct why *why)
{
    const struct new_record record = { topic, key, value, headers, 0 };
    struct waiter waiter = { .reported = false, .why = why };
    enum err err = topic_writer_put(w, &record, on_waited, &waiter, why);

    if (err) {
        topic_writer_poll(w, 0); /* so that the next one has a chance */
        return err;
    }
    while (!atomic_load(&waiter.reported))
        (void)!topic_writer_flush(w, FLUSH_STEP_MS, NULL);
    if (!waiter.err && at)
        *at = (struct topic_position){ topic, waiter.at.partition, waiter.at.offset };
    return waiter.err;
}

void topic_writer_poll(struct topic_writer *w, int timeout_ms)
{
    if (w->has_thread)
        return;
    rd_kafka_poll(w->client.rk, timeout_ms);
    renew(w);
}

enum err topic_writer_flush(struct topic_writer *w, int timeout_ms, struct why *why)
{
    int64_t deadline = clock_mono_ms() + timeout_ms, left = timeout_ms;

    do {
        pthread_rwlock_rdlock(&w->use);
        bool all = !rd_kafka_flush(w->client.rk, left < FLUSH_STEP_MS ? (int)left : FLUSH_STEP_MS);
        pthread_rwlock_unlock(&w->use);
        if (!w->has_thread) /* a broken one has nothing to wait for, and takes nothing any more */
            renew(w);
        if (all)
            return OK;
        left = deadline - clock_mono_ms();
    } while (left > 0);
    return why_set(why, ERR_UNKNOWN, "%zu records were not acknowledged by Kafka within %d ms",
                   topic_writer_pending(w), timeout_ms);
}

enum err topic_writer_check(struct topic_writer *w, const char *const *topics, size_t n,
                            int timeout_ms, struct why *why)
{
    pthread_rwlock_rdlock(&w->use);
    enum err err = topic_client_partitions(&w->client, topics, n, timeout_ms, NULL, why);
    pthread_rwlock_unlock(&w->use);
    return err;
}

size_t topic_writer_pending(struct topic_writer *w)
{
    pthread_rwlock_rdlock(&w->use);
    int n = rd_kafka_outq_len(w->client.rk);
    pthread_rwlock_unlock(&w->use);
    return (size_t)n;
}

bool topic_writer_fatal(struct topic_writer *w, struct why *why)
{
    if (!atomic_load(&w->hopeless))
        return false;
    (void)why_set(why, ERR_STOP, "%s", w->reason.text); /* not written any more */
    return true;
}

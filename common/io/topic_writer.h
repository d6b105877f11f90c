/* Writes records to topics: an idempotent producer with acks=all. What was reported written is
 * stored. The partition is chosen from the key with murmur2 (as Java clients do: partitioner
 * murmur2_random), so records of one key keep their order. A producer with a fatal error, or whose
 * records time out for 30 s on end, is replaced: its records are reported ERR_UNKNOWN, with the
 * reason, and until the last report nothing new is taken. */
#ifndef CRCR_IO_TOPIC_WRITER_H
#define CRCR_IO_TOPIC_WRITER_H

#include "../base/headers.h"
#include "../base/wake.h"
#include "kafka.h"

struct topic_writer;

struct topic_writer_options {
    struct kafka_options kafka;
    /* 0: 7,000. After that a record is reported ERR_UNKNOWN. Any other value is also TCP's user
     * timeout (RFC 9293 section 3.8.3): the kernel sends nothing once a cut network is back. */
    int message_timeout_ms;
    /* A record waits 5 ms for others: a batch costs the broker about as much as one record. Not
     * where somebody waits: ingest (GitHub, a job), the router (a dispatch), tools (an operator).
     */
    bool lingers;
    bool own_thread;   /* a thread of the writer serves the reports; else topic_writer_poll does */
    struct wake *wake; /* woken when reports wait for topic_writer_poll; borrowed, may be NULL */
};

/* Called once for each record. OK: stored, at says where. ERR_UNKNOWN: no acknowledgement was seen,
 * it may be stored. ERR_REFUSE: the broker refused this record for good (too large). ERR_RETRY: the
 * broker takes no records now (not authorised, no such topic). On the writer's thread or inside
 * topic_writer_poll/flush. */
typedef void topic_written_fn(void *opaque, enum err err, const struct topic_position *at,
                              const char *reason);

enum err topic_writer_new(struct topic_writer **ret, const struct topic_writer_options *options,
                          struct why *why) MUST_CHECK;
/* Drops what is still queued, reporting each as ERR_UNKNOWN from inside this call: call
 * topic_writer_flush before. NULL is fine. */
void topic_writer_free(struct topic_writer *w);

/* A record to write; all is borrowed for the call. */
struct new_record {
    const char *topic;
    struct str key;                /* ptr NULL: none */
    struct str value;              /* ptr NULL: a tombstone */
    const struct headers *headers; /* NULL: none */
    /* The partition, from 1, whatever the key (the last if there are fewer); 0: by the key. */
    int slot;
};

/* Queues a copy of the record. done may be NULL. ERR_RETRY: the queue (64 MiB) is full, or the
 * producer is being replaced; done is not called. */
enum err topic_writer_put(struct topic_writer *w, const struct new_record *record,
                          topic_written_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* The same, but the value is malloc'ed memory that the writer takes over when it returns OK (it is
 * not copied); on an error it stays the caller's. */
enum err topic_writer_give(struct topic_writer *w, const struct new_record *record,
                           topic_written_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* The same, but the value stays the caller's, who keeps it until done is called or the writer is
 * freed. */
enum err topic_writer_lend(struct topic_writer *w, const struct new_record *record,
                           topic_written_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* Queues and waits for the report: message_timeout_ms at most, unless a name server does not
 * answer. For tools. */
enum err topic_writer_put_wait(struct topic_writer *w, const char *topic, struct str key,
                               struct str value, const struct headers *headers,
                               struct topic_position *at, struct why *why) MUST_CHECK;
/* Serves reports on this thread, waiting at most timeout_ms for the first. */
void topic_writer_poll(struct topic_writer *w, int timeout_ms);
/* Waits until everything is reported; ERR_UNKNOWN when timeout_ms pass before. */
enum err topic_writer_flush(struct topic_writer *w, int timeout_ms, struct why *why) MUST_CHECK;
/* Asks the brokers for their metadata; ERR_RETRY when none answers in timeout_ms, ERR_STOP with the
 * names when one of the topics does not exist. */
enum err topic_writer_check(struct topic_writer *w, const char *const *topics, size_t n,
                            int timeout_ms, struct why *why) MUST_CHECK;
/* Records not reported yet. */
size_t topic_writer_pending(struct topic_writer *w);
/* True once librdkafka reported a fatal error before anything was stored: a new producer would
 * fail, too. The process must end and say why. */
bool topic_writer_fatal(struct topic_writer *w, struct why *why);

#endif

/* What the files of topic_writer share. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_WRITER_INNER_H
#define CRCR_IO_TOPIC_WRITER_INNER_H

#include <stdatomic.h>

#include "topic_client.h"
#include "topic_writer.h"

struct rd_kafka_queue_s;

struct topic_writer {
    struct topic_client client;       /* first: librdkafka's opaque; its rk may be replaced */
    struct rd_kafka_conf_s *conf;     /* of the next producer */
    int timeout_ms;                   /* of a record */
    unsigned user_timeout_ms;         /* TCP's; 0: the kernel's */
    struct rd_kafka_queue_s *reports; /* for wake; else NULL */
    struct wake *wake;                /* borrowed; may be NULL */
    atomic_int served;                /* reports handed out so far; wraps */
    atomic_bool stored;               /* something, by this producer */
    atomic_llong late_since_ms;       /* monotonic: the first of the records that timed out … */
    atomic_llong late_ms;             /* … and the last; 0: none */
    atomic_bool hopeless;             /* it is broken, and another one would be */
    struct why broken;                /* what ended the producer; the polling thread's */
    struct rd_kafka_s *retired; /* the one before, while it has records to report; swap, to write */
    struct rd_kafka_queue_s *retired_reports; /* for wake; else NULL */
    pthread_mutex_t swap;
    int users; /* under swap: threads that are in a call of client.rk */
    bool has_thread;
    atomic_bool stop;
    pthread_t thread;
};

/* Makes the producer that conf describes. */
enum err topic_writer_open(struct topic_writer *w, struct why *why) MUST_CHECK;
/* Arms the wake-up of the producer there is now. */
void topic_writer_arm(struct topic_writer *w);
/* Between them client.rk stays. On the polling thread it stays anyway. */
struct rd_kafka_s *topic_writer_hold(struct topic_writer *w);
void topic_writer_let_go(struct topic_writer *w);
/* Ends the producer, reporting what it still has. NULL is fine. */
void topic_writer_close(struct rd_kafka_s *rk, struct rd_kafka_queue_s *reports);
/* A record timed out. */
void topic_writer_late(struct topic_writer *w, int64_t now_ms);
/* Puts a new producer in the place of a broken one, and serves the reports of that. On the polling
 * thread, outside of reports. */
void topic_writer_renew(struct topic_writer *w);

#endif

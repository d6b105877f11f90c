/* What the files of topic_reader share. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_READER_INNER_H
#define CRCR_IO_TOPIC_READER_INNER_H

#include "topic_client.h"
#include "topic_joining.h"
#include "topic_partition.h"

struct rd_kafka_queue_s;
struct rd_kafka_topic_partition_list_s;

struct topic_reader {
    struct topic_client client;     /* first: librdkafka's opaque */
    struct rd_kafka_queue_s *queue; /* what consumer_poll reads; carries the wake-up */
    struct topic_joining joining;
    int64_t session_ms;
    struct topic_partition **partitions;
    size_t n_partitions;
    struct topic_reader_share moved; /* all but now */
    int max_in_hand;
    size_t max_span;
    size_t max_in_hand_bytes;
    void (*revoked)(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms);
    void *opaque;
    bool paused;        /* by topic_reader_pause */
    bool revoking;      /* inside revoked(): next hands out nothing */
    bool was_assigned;  /* something or nothing, ever */
    size_t n_paused;    /* partitions */
    int64_t commit_due; /* monotonic ms */
    size_t since_nudge; /* bytes taken */
};

/* Bounded, unlike rd_kafka_consumer_close. on_rebalance runs inside, with its own 20 s, after which
 * leaving gets its time anew: of 25 s that a daemon has to end, a rebalance that never comes while
 * others leave too must not take all. False: the handle may not be destroyed, which could abort the
 * process, or never end. */
bool topic_reader_leave(struct topic_reader *r) MUST_CHECK;
struct topic_partition *topic_reader_find(const struct topic_reader *r, const char *topic,
                                          int32_t id);
/* Sends what is due without waiting; nothing while the group is being rebalanced. */
void topic_reader_commit_start(struct topic_reader *r);
/* Sends what is due of the listed partitions (NULL: all) and waits, at most 5 s. */
enum err topic_reader_commit_wait(struct topic_reader *r,
                                  const struct rd_kafka_topic_partition_list_s *only,
                                  struct why *why) MUST_CHECK;
/* The answer to what was started: failed ones become due again. list may be NULL. */
void topic_reader_commit_finish(struct topic_reader *r, int err,
                                const struct rd_kafka_topic_partition_list_s *list);

#endif

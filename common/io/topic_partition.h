/* One assigned partition of a reader: which records are in hand, and how far it may be committed.
 * Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_PARTITION_H
#define CRCR_IO_TOPIC_PARTITION_H

#include "topic_reader.h"
#include "watermark.h"

struct rd_kafka_message_s;
struct topic_partition;

/* A record, and the copy of librdkafka's message that it borrows from. */
struct held {
    struct record record;              /* first: record_done gets this pointer */
    struct topic_partition *partition; /* NULL: taken away meanwhile */
    char *copy;
    size_t bytes;
    struct held *prev, *next;
};

struct topic_partition {
    char *topic;
    int32_t id;
    struct watermark mark;
    struct held *held; /* in hand, in the order of taking */
    size_t n_held;
    size_t held_bytes;
    bool paused;        /* as librdkafka was told last */
    int64_t moved_ms;   /* monotonic: a record or the end came, or it was paused or resumed */
    int64_t committing; /* the offset last sent to the broker; -1: none, or it failed */
};

struct topic_partition *topic_partition_new(const char *topic, int32_t id);
/* Records still in hand stay valid where they are, but belong to nobody: done commits nothing. NULL
 * is fine. */
void topic_partition_free(struct topic_partition *p);
/* Copies the message, and destroys it. */
struct held *topic_partition_take(struct topic_partition *p, struct rd_kafka_message_s *message);
/* Lets go of everything in hand. */
void topic_partition_orphan(struct topic_partition *p);
/* The offset that should be committed and has not been sent yet, else -1. */
int64_t topic_partition_due(const struct topic_partition *p);

#endif

/* One assigned partition of a reader: which records are in hand, and how far it may be committed
 * while they are done out of order. PURE. Private to common/io/topic_*.c.
 *
 *     taken    5  6  7  9 12      (8, 10, 11: compacted away, or markers of a transaction)
 *     done     ✓     ✓  ✓
 *     offset      ▲ 6: the lowest that is not done; once 6 is done it is 12, then 13 */
#ifndef CRCR_IO_TOPIC_PARTITION_H
#define CRCR_IO_TOPIC_PARTITION_H

#include "topic_reader.h"

struct topic_partition;

/* A record in hand, and the copy that it borrows from. */
struct held {
    struct record record;              /* first: record_done gets this pointer */
    struct topic_partition *partition; /* NULL: revoked meanwhile */
    char *copy;
    size_t bytes;
    uint64_t number;
    struct held *prev, *next;
};

struct topic_partition {
    char *topic;
    int32_t id;
    struct held *held; /* in hand, in the order of taking, which is that of their offsets */
    size_t n_held;
    size_t held_bytes;
    /* One past the highest offset that was read; at first what is committed; -1: nothing is. */
    int64_t next;
    /* As next; lower while it is not known whether what is missing from there on was removed. */
    int64_t expected;
    int64_t hole_end; /* what came behind the last hole */
    uint64_t n_taken; /* and the number of the next one */
    int64_t dropped;  /* the lowest offset that was; -1: none. What is above is read again too */
    uint64_t dropped_number;
    bool paused;        /* what librdkafka was asked last */
    int64_t moved_ms;   /* monotonic: a record or the end came, or it was paused or resumed */
    int64_t committing; /* the offset last sent to the broker; -1: none, or it failed */
    struct topic_partition *list_next; /* in the reader's list */
};

/* committed: of its group; negative: nothing is, or it is not known. */
struct topic_partition *topic_partition_new(const char *topic, int32_t id, int64_t committed);
/* Records still in hand stay valid where they are, but belong to nobody: done commits nothing. NULL
 * is fine. */
void topic_partition_free(struct topic_partition *p);
/* NULL when the list has none of that name. */
struct topic_partition *topic_partition_find(struct topic_partition *list, const char *topic,
                                             int32_t id);
/* Copies the record; the copy is the caller's until record_done or record_drop. */
struct record *topic_partition_take(struct topic_partition *p, const struct record *record);
/* Before take or pass. How many of the offsets from expected to this one, which came, are below
 * first, where the log begins now: they were removed unread. What else is missing are markers of
 * transactions, or it was compacted away. first -1, unknown: expected stays until it is known. -1:
 * the log ends (end; -1: unknown) below what was read: its offsets went back. */
int64_t topic_partition_removed(struct topic_partition *p, int64_t offset, int64_t first,
                                int64_t end);
/* The end of the partition was read. */
void topic_partition_pass(struct topic_partition *p, int64_t offset);
/* The offset to commit: everything below it is done. -1 while nothing is known. */
int64_t topic_partition_offset(const struct topic_partition *p);
/* How many were taken since the lowest that is not done, with it: a crash repeats no more. */
size_t topic_partition_span(const struct topic_partition *p);
/* How full it is, in percent of the limit that is nearest. */
size_t topic_partition_full(const struct topic_partition *p, size_t max_records, size_t max_bytes,
                            size_t max_span);

#endif

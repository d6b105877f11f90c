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
    /* As next; lower while nobody knows whether the offsets missing from there on were removed. */
    int64_t expected;
    int64_t hole_end; /* the offset that came after the last gap */
    uint64_t n_taken; /* also the number of the next one */
    int64_t dropped;  /* the lowest offset that was; -1: none. All above is read again, too */
    uint64_t dropped_number;
    bool paused;        /* what librdkafka was asked last */
    int64_t moved_ms;   /* monotonic: a record or the end came, or it was paused or resumed */
    int64_t committing; /* the offset last sent to the broker; -1: none, or it failed */
    struct topic_partition *list_next; /* in the reader's list */
};

/* committed: the group's offset; negative: none, or not known. */
struct topic_partition *topic_partition_new(const char *topic, int32_t id, int64_t committed);
/* Records in hand stay valid, but record_done commits nothing any more. NULL is fine. */
void topic_partition_free(struct topic_partition *p);
/* NULL when the list has none of that name. */
struct topic_partition *topic_partition_find(struct topic_partition *list, const char *topic,
                                             int32_t id);
/* Copies the record; the copy is the caller's until record_done or record_drop. */
struct record *topic_partition_take(struct topic_partition *p, const struct record *record);
/* Call it before take or pass, with the offset that came. Returns how many of the offsets from
 * expected to this one were removed unread: those below first, where the log begins now. The other
 * missing ones are markers of transactions, or were compacted away. first -1 (not known): expected
 * stays until it is. -1: the log's end (end; -1: not known) is below what was read: the offsets
 * went back. */
int64_t topic_partition_removed(struct topic_partition *p, int64_t offset, int64_t first,
                                int64_t end);
/* The end of the partition was read. */
void topic_partition_pass(struct topic_partition *p, int64_t offset);
/* The offset to commit: everything below it is done. -1 while nothing is known. */
int64_t topic_partition_offset(const struct topic_partition *p);
/* How many records were taken from the lowest that is not done on: a crash repeats no more. */
size_t topic_partition_span(const struct topic_partition *p);
/* How full it is, in percent of the limit that it is closest to. */
size_t topic_partition_full(const struct topic_partition *p, size_t max_records, size_t max_bytes,
                            size_t max_span);

#endif

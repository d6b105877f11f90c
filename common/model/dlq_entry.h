/* The dead-letter queue: its entries, and what became of them.
 *
 * A record of the topic `dlq` is an entry, or the resolution of one. Kafka cannot delete one
 * record, so a resolution is a record of the queue itself, under the same key and so in the same
 * partition:
 *
 *   entry at 3@17 (class=refused) ◀── resolves=3@17 ── record (class=replayed or dropped)
 *
 * PURE. */
#ifndef CRCR_MODEL_DLQ_ENTRY_H
#define CRCR_MODEL_DLQ_ENTRY_H

#include "../base/headers.h"
#include "limits.h"

enum dlq_state { DLQ_OPEN, DLQ_REPLAYED, DLQ_DROPPED };
/* "open", "replayed", "dropped". */
const char *dlq_state_name(enum dlq_state state);

struct dlq_position {
    int32_t partition;
    int64_t offset;
};
/* "3@17". */
#define DLQ_POSITION_SIZE 40
bool dlq_position_parse(struct str text, struct dlq_position *ret);
void dlq_position_text(struct dlq_position at, char to[DLQ_POSITION_SIZE]);

/* What is kept of a record. Text that is not known is "", and what is too long is cut. */
struct dlq_entry {
    char position[DLQ_POSITION_SIZE]; /* its key in a struct dlq */
    struct dlq_position at;
    int64_t parked_ms;
    enum dlq_state state;
    bool exists; /* false: only its resolution has come */
    bool chosen; /* the caller's */
    char class[16];
    char source_topic[96], to_topic[96];
    char key[300];
    char delivery[DELIVERY_MAX + 1];
    char *repos; /* downstreams, comma-separated; mostly one */
    char error[300];
};
/* Fills one that is zeroed. Takes any record, not only what is parked. */
void dlq_entry_read(struct dlq_entry *e, int64_t timestamp_ms, struct str key,
                    const struct headers *headers);
void dlq_entry_clear(struct dlq_entry *e);

struct dlq {
    /* 0: keeps all that came. Else only what is open, at most so many: past that the tenth that was
     * parked first is forgotten, and more is set. */
    size_t open_max;
    bool more;
    struct dlq_item *items;
};
void dlq_clear(struct dlq *d);
/* A record of the topic: an entry, or what resolves one. In any order; with open_max in that of its
 * partition. */
void dlq_add(struct dlq *d, struct dlq_position at, int64_t timestamp_ms, struct str key,
             const struct headers *headers);
/* Of that partition nothing is there before first any more. */
void dlq_expire(struct dlq *d, int32_t partition, int64_t first);
/* Puts the entries into order, and drops those of which only the resolution has come. */
void dlq_sort(struct dlq *d, bool newest_first);
size_t dlq_count(const struct dlq *d);
/* The entry after that one; after NULL: the first. NULL: there is none. */
struct dlq_entry *dlq_next(const struct dlq *d, const struct dlq_entry *after);
/* NULL: there is none. */
struct dlq_entry *dlq_find(const struct dlq *d, struct dlq_position at);

#endif

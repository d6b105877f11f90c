/* What a record of the topic `dlq` is: an entry, or the resolution of one. Kafka cannot delete one
 * record, so a resolution is a record of the queue itself, under the same key and so in the same
 * partition:
 *
 *   entry at 3@17 (class=refused) ◀── resolves=3@17 ── record (class=replayed or dropped)
 *
 * PURE. */
#ifndef CRCR_MODEL_DLQ_ENTRY_H
#define CRCR_MODEL_DLQ_ENTRY_H

#include "../base/headers.h"

enum dlq_state { DLQ_OPEN, DLQ_REPLAYED, DLQ_DROPPED };
/* "open", "replayed", "dropped". */
const char *dlq_state_name(enum dlq_state state);

struct dlq_place {
    int32_t partition;
    int64_t offset;
};
/* "3@17". */
#define DLQ_PLACE_SIZE 40
bool dlq_place_parse(struct str text, struct dlq_place *ret);
void dlq_place_text(struct dlq_place at, char to[DLQ_PLACE_SIZE]);

/* What the record with these headers makes of the entry at *of: DLQ_REPLAYED or DLQ_DROPPED;
 * DLQ_OPEN: it is an entry itself, *of is untouched. */
enum dlq_state dlq_resolution(const struct headers *headers, struct dlq_place *of);

#endif

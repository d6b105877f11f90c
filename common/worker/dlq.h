/* A record for the dead-letter queue: unchanged, plus headers that say why. A record that others
 * wrote into our topics may be too large for us to write: the broker measures what it receives,
 * theirs compressed, ours plain. The DLQ then keeps its beginning, and the header `cut` gives the
 * original size. PURE. */
#ifndef CRCR_WORKER_DLQ_H
#define CRCR_WORKER_DLQ_H

#include "../io/kafka.h"

struct dlq_record {
    struct str key, value;
    struct headers headers;
};

/* Whether we can write this record with our headers added, into the DLQ or another topic. */
bool dlq_fits(struct str key, struct str value, const struct headers *headers);
/* Everything is borrowed. headers: those to keep, mostly the record's own. class is poison, refused
 * or exhausted. */
void dlq_record_init(struct dlq_record *d, const struct record *from, const struct headers *headers,
                     const char *class, const char *error, int64_t now_ms);

#endif

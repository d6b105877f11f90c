/* A record as it goes into the dead-letter queue: as it was, and with the headers that say why.
 * What others wrote into our topics may be too large for that: the broker measures what it is sent,
 * theirs compressed, ours plain. Of such a record the first part is kept, and its header `cut` says
 * how large it was. PURE. */
#ifndef CRCR_WORKER_DLQ_H
#define CRCR_WORKER_DLQ_H

#include "../base/headers.h"

struct dlq_record {
    struct str key, value;
    struct headers headers;
};

/* Whether we can write a record with headers of ours added: into the DLQ, or into another topic. */
bool dlq_fits(struct str key, struct str value, const struct headers *headers);
/* Everything is borrowed. class is poison, refused or exhausted. */
void dlq_record_init(struct dlq_record *d, struct str key, struct str value,
                     const struct headers *headers, const char *source_topic, const char *class,
                     const char *error, int64_t now_ms);

#endif

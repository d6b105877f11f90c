/* A record as it goes into the dead-letter queue: whole, and with the headers that say why. What
 * others wrote into our topics may be too large for that: the broker measures what it is sent,
 * theirs compressed, ours plain. Such a record is buried in part, and its header `cut` says so.
 * PURE. */
#ifndef CRCR_MODEL_BURIAL_H
#define CRCR_MODEL_BURIAL_H

#include <stdint.h>

#include "../base/headers.h"

struct burial {
    struct str key, value;
    struct headers headers;
};

/* Whether we can write it whole, with headers of ours added: into the queue, or into a topic. */
bool burial_keeps_whole(struct str key, struct str value, const struct headers *headers);
/* Everything is borrowed. */
void burial_init(struct burial *b, struct str key, struct str value, const struct headers *headers);
/* cls is "poison", "refused" or "exhausted". The text is borrowed. */
void burial_explain(struct burial *b, const char *source_topic, const char *cls, const char *error,
                    int64_t now_ms);

#endif

/* The entries of the dead-letter queue that nobody has resolved. At most 10,000 (10 MB): past that
 * the tenth that was parked first is forgotten. PURE. */
#ifndef CRCR_REPORTER_WEB_OPEN_DLQ_H
#define CRCR_REPORTER_WEB_OPEN_DLQ_H

#include "../../common/model/dlq_entry.h"
#include "record_text.h"

#define OPEN_DLQ_MAX 10000

struct open_dlq_entry {
    struct record_text text;
    int64_t parked_ms;
};

struct open_dlq;
struct open_dlq *open_dlq_new(void);
/* NULL is fine. */
void open_dlq_free(struct open_dlq *d);
/* A record of the topic, in the order of its partition: an entry, or what resolves one. */
void open_dlq_add(struct open_dlq *d, const struct record *record);
/* Of that partition nothing is there before first any more. */
void open_dlq_expire(struct open_dlq *d, int32_t partition, int64_t first);
/* How many are open; *more: others were forgotten. */
size_t open_dlq_count(const struct open_dlq *d, bool *more);
/* Puts them into order, the newest first. */
void open_dlq_sort(struct open_dlq *d);
/* The one after that; NULL: the first. NULL after the last. */
const struct open_dlq_entry *open_dlq_next(const struct open_dlq *d,
                                           const struct open_dlq_entry *entry);

#endif

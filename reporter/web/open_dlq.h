/* The entries of the dead-letter queue that nobody has resolved. At most 10,000 (10 MB; 60 where
 * each byte is escaped): past that the tenth that was parked first is forgotten. PURE. */
#ifndef CRCR_REPORTER_WEB_OPEN_DLQ_H
#define CRCR_REPORTER_WEB_OPEN_DLQ_H

#include "../../common/base/buf.h"
#include "../../common/io/kafka.h"

#define OPEN_DLQ_MAX   10000
#define OPEN_DLQ_SHOWN 200

/* What the pages show of a record, in the queue or not: its place and whom it is for, as members of
 * an object that is open, at most 6 KiB. What is not known is null, and what is too long is cut. */
void record_text_put(struct buf *to, const struct record *record);

struct open_dlq;
struct open_dlq *open_dlq_new(void);
/* NULL is fine. */
void open_dlq_free(struct open_dlq *d);
/* A record of the topic, in the order of its partition: an entry, or what resolves one. */
void open_dlq_add(struct open_dlq *d, const struct record *record);
/* Of that partition nothing is there before first any more. */
void open_dlq_expire(struct open_dlq *d, int32_t partition, int64_t first);
/* The member "dlq" of /api/crcr/pipeline, with the newest entries, or of /api/crcr/health. NULL:
 * the queue is being read. */
void open_dlq_put(struct buf *to, struct open_dlq *d, bool entries);

#endif

/* What the pages show of a record: its place, and whom it is for. PURE. */
#ifndef CRCR_REPORTER_WEB_RECORD_TEXT_H
#define CRCR_REPORTER_WEB_RECORD_TEXT_H

#include "../../common/base/buf.h"
#include "../../common/io/kafka.h"
#include "../../common/model/limits.h"

/* Text that is not known is "", and what is too long is cut. */
struct record_text {
    int32_t partition;
    int64_t offset; /* -1: there is no record */
    char delivery[DELIVERY_MAX + 1], repos[200], key[120], error[300];
    char class[16], source_topic[96], to_topic[96]; /* in the DLQ; in it and in delay topics */
};
void record_text_init(struct record_text *t, const struct record *record);
/* Its members, in an object that is open. */
void record_text_put(struct buf *to, const struct record_text *t);

#endif

/* What the pages show of a record: its place, and whom it is for. PURE. */
#ifndef CRCR_REPORTER_WEB_RECORD_TEXT_H
#define CRCR_REPORTER_WEB_RECORD_TEXT_H

#include "../../common/base/buf.h"
#include "../../common/io/kafka.h"

/* Its members, in an object that is open: at most 6 KiB. What is not known is null, and what is too
 * long is cut. */
void record_text_put(struct buf *to, const struct record *record);

#endif

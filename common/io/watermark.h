/* Which offset of a partition may be committed while records are done out of order. PURE.
 *
 *     taken    5  6  7  9 12      (8, 10, 11: compacted away, or markers of a transaction)
 *     done     ✓     ✓  ✓
 *     offset      ▲ 6: the lowest that is not done; once 6 is done it is 12, then 13 */
#ifndef CRCR_IO_WATERMARK_H
#define CRCR_IO_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watermark_mark;

struct watermark {
    struct watermark_mark *marks; /* a ring, offsets ascending; starts at the lowest not done */
    size_t capacity;              /* a power of two, or 0 */
    size_t first;
    size_t n;
    int64_t next; /* one past the highest offset handed out; -1: none yet */
};

void watermark_init(struct watermark *w);
void watermark_clear(struct watermark *w);
/* A record was handed out. False, and nothing is changed, when the offset is not above all earlier
 * ones. */
bool watermark_take(struct watermark *w, int64_t offset);
/* Offsets go on from there, which was handed out before: what is out below stays so. */
void watermark_back(struct watermark *w, int64_t offset);
/* There is nothing more to hand out below that offset. */
void watermark_pass(struct watermark *w, int64_t offset);
/* That record is done. Offsets that are not out are ignored. */
void watermark_done(struct watermark *w, int64_t offset);
/* The offset to commit: everything below it is done. -1 while nothing is known. */
int64_t watermark_offset(const struct watermark *w);
/* From the lowest not done to the highest handed out: how many would be read again after a crash.
 */
size_t watermark_span(const struct watermark *w);

#endif

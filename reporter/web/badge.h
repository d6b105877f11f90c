/* The badge of a back end: an SVG image, "crcr" and its state. PURE. */
#ifndef CRCR_REPORTER_WEB_BADGE_H
#define CRCR_REPORTER_WEB_BADGE_H

#include "../../common/model/result_record.h"
#include "score.h"

/* Shows the level and the pass rate; if no job has finished, how the newest nightly run ended.
 * level 0: not listed. completed, successful: jobs of pull requests. jobs: newest first. */
void badge_put(struct buf *to, int level, int64_t completed, int64_t successful,
               const struct result_record *jobs, size_t n);
/* For an unknown back end. */
void badge_put_unknown(struct buf *to);

#endif

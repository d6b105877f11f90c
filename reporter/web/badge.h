/* The badge of a back end: an SVG image, "crcr" and what it says. PURE. */
#ifndef CRCR_REPORTER_WEB_BADGE_H
#define CRCR_REPORTER_WEB_BADGE_H

#include "../../common/model/result_record.h"
#include "score.h"

/* level: 0: not listed. completed, successful: jobs of pull requests. jobs: newest first.
 * Says the level and the pass rate; where none has finished, how its newest nightly run ended. */
void badge_put(struct buf *to, int level, int64_t completed, int64_t successful,
               const struct result_record *jobs, size_t n);
/* Of a back end that is not known. */
void badge_put_unknown(struct buf *to);

#endif

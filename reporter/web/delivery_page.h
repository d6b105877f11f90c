/* What became of one delivery (GET /api/crcr/deliveries/<id>), read from the view. */
#ifndef CRCR_REPORTER_WEB_DELIVERY_PAGE_H
#define CRCR_REPORTER_WEB_DELIVERY_PAGE_H

#include "../../common/base/buf.h"
#include "../reporter.h"

#define DELIVERY_JOBS 1000
#define DELIVERY_FULL 100 /* jobs that come with failed tests and verdict */

/* limit and full_max as jobs_of_delivery; full_max 0: without what the timeline needs, too. *known:
 * it has a dispatch or a job. */
enum err delivery_put(struct redis *r, const struct reporter *reporter, struct str id, size_t limit,
                      size_t full_max, struct buf *to, bool *known, struct why *why) MUST_CHECK;
/* Of an id of which only the beginning is given: the delivery, or {"matches": [the first 20]} where
 * several begin so. Those that have a dispatch are found. */
enum err delivery_prefix_put(struct redis *r, const struct reporter *reporter, struct str prefix,
                             struct buf *to, bool *known, struct why *why) MUST_CHECK;

#endif

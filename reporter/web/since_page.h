/* GET /api/crcr/repos/<owner>/<repo>/since, read from the view. */
#ifndef CRCR_REPORTER_WEB_SINCE_PAGE_H
#define CRCR_REPORTER_WEB_SINCE_PAGE_H

#include "../../common/base/buf.h"
#include "../../common/io/redis.h"

/* Which jobs fail on the upstream's main and since when, and which are flaky (json.md shows the
 * object). *known: the downstream has jobs. */
enum err since_put(struct redis *r, struct str repo, const char *upstream_repo, struct buf *to,
                   bool *known, struct why *why) MUST_CHECK;

#endif

/* The level of a downstream: since when, the levels before it, and whether its figures are good
 * enough for L3 (behaviour.md, Levels), with the evidence. The same rules as `crcrctl levels`,
 * over the newest 1,000 jobs that the view has. */
#ifndef CRCR_REPORTER_WEB_LEVEL_H
#define CRCR_REPORTER_WEB_LEVEL_H

#include "../../common/view/allowlist_feed.h"
#include "../../common/view/jobs.h"

/* *known: the repo is listed, or was once. */
enum err level_put(struct redis *redis, struct allowlist_feed *feed, struct str repo,
                   int64_t now_ms, struct buf *to, bool *known, struct why *why) MUST_CHECK;

#endif

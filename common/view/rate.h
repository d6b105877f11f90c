/* The buckets of a downstream's callbacks that all replicas of ingest share. The rule is that of
 * ingest/callback_rate.h, in rate.lua. */
#ifndef CRCR_VIEW_RATE_H
#define CRCR_VIEW_RATE_H

#include "../io/redis.h"

/* Takes one request of that size. *retry_after_s is 0 when it may go on; otherwise nothing was
 * taken. Errors: Redis is unavailable. */
enum err rate_take(struct redis *r, struct str repo, int64_t bytes, int64_t requests_per_min,
                   int64_t bytes_per_min, int *retry_after_s, struct why *why) MUST_CHECK;

#endif

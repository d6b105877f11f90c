/* The callback rate limit of a downstream: requests and bytes in any 60 s, shared by all replicas
 * of ingest. Counted in slots of 5 s, so what is counted is the last 60 to 65 s. */
#ifndef CRCR_VIEW_RATE_H
#define CRCR_VIEW_RATE_H

#include "../io/redis.h"

/* Counts one request of that size unless it would pass a limit. *retry_after_s is 0 when it may go
 * on. A refused call is not counted. Errors: Redis is away (the caller uses its local limiter). */
enum err rate_take(struct redis *r, struct str repo, int64_t bytes, int64_t max_requests,
                   int64_t max_bytes, int *retry_after_s, struct why *why) MUST_CHECK;

#endif

/* The callback rate limit while Redis is away: requests and bytes of each downstream in any 60 s,
 * counted by this process alone. The same slots as rate.lua. PURE but for its lock; the time is an
 * argument. Any thread. */
#ifndef CRCR_INGEST_LIMITER_H
#define CRCR_INGEST_LIMITER_H

#include "../common/base/str.h"

struct limiter;

struct limiter *limiter_new(int64_t max_requests, int64_t max_bytes);
void limiter_free(struct limiter *l);
/* Counts one request unless it would pass a limit; 0, or the seconds after which it would pass.
 * Grows with the number of repos: call it only for repos that the allowlist has. */
int limiter_take(struct limiter *l, struct str repo, int64_t bytes, int64_t now_s);

#endif

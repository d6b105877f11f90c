/* The rate limit of a downstream's callbacks: a bucket of requests, one of bytes, and a quota of
 * bytes a day. A bucket is refilled at its rate a minute and holds ten minutes' worth; a refused
 * request takes nothing. All replicas of ingest share the buckets in Redis (common/view/rate.lua).
 * While Redis is unavailable this process decides alone, by the same rule. Any thread. */
#ifndef CRCR_INGEST_CALLBACK_RATE_H
#define CRCR_INGEST_CALLBACK_RATE_H

#include "../common/io/redis.h"
#include "../common/view/rate.h"

struct callback_rate;

/* Each limit is at least 1. */
struct callback_rate *callback_rate_new(int64_t requests_per_min, int64_t bytes_per_min,
                                        int64_t bytes_a_day);
void callback_rate_free(struct callback_rate *rate);

/* How long the request must wait; 0 s: it may go on. *alone: Redis was not asked, or did not
 * answer. Call it only for repos of the allowlist. */
struct rate_wait callback_rate_take(struct callback_rate *rate, struct redis *redis,
                                    struct str repo, int64_t bytes, bool *alone);
/* The rule without Redis; PURE but for its lock. now_us: the wall clock, as in rate.lua, since a
 * day ends at midnight UTC. If it is set back, a full bucket may look empty for as long. */
struct rate_wait callback_rate_take_alone(struct callback_rate *rate, struct str repo,
                                          int64_t bytes, int64_t now_us);

/* Callbacks of a delivery whose dispatch Redis does not know: a client can make up such an id, so
 * only a few are accepted, small ones. */
#define CALLBACK_PENDING_A_MINUTE  10 /* and downstream */
#define CALLBACK_PENDING_MAX_BYTES (64 << 10)
/* Seconds after which the same callback may be accepted; 0: it is accepted now, also where Redis
 * turns out to be unavailable (provenance_of_lookup). */
int callback_rate_pending(struct redis *redis, struct str repo, int64_t bytes);

#endif

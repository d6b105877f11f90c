/* The buckets of a downstream that all replicas share. Each bucket is full at first, and an empty
 * one fills evenly in period_s. The rule is in rate.lua. */
#ifndef CRCR_VIEW_RATE_H
#define CRCR_VIEW_RATE_H

#include "../io/redis.h"

/* What is counted; each kind has buckets of its own. */
enum rate_kind {
    RATE_CALLBACKS,
    RATE_PENDING, /* callbacks whose dispatch is not known yet */
    RATE_COMMITS, /* commits that self-reports name, asked for at GitHub */
};

struct rate_limit {
    int64_t requests, bytes; /* what the buckets hold, from 1 */
    int64_t period_s;
    int64_t bytes_a_day; /* of a day in UTC; 0: any number */
};

struct rate_wait {
    int seconds; /* after which the same request would pass; 0: it was taken */
    bool day;    /* the quota of the day is used up, not a bucket */
};

/* Takes one request of that size, or nothing if there is to be a wait. Errors: Redis is
 * unavailable. */
enum err rate_take(struct redis *r, enum rate_kind kind, struct str repo,
                   const struct rate_limit *limit, int64_t bytes, struct rate_wait *ret,
                   struct why *why) MUST_CHECK;

#endif

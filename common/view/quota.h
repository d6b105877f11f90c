/* How much of Redis one downstream may fill with its jobs, so that claims always have room. PURE.
 *
 *   Redis is filled to     a downstream may have
 *   less than 50 %         1 GiB
 *   50 % and more          an equal share of 60 % of maxmemory, at most 1 GiB
 *   80 % and more          no new job
 *   100 %                  1 GiB: Redis refuses all writes, and the fold waits
 *
 * What is beyond goes to the DLQ as refused; jobs that are in the view come to their end
 * (fold/quota.lua). */
#ifndef CRCR_VIEW_QUOTA_H
#define CRCR_VIEW_QUOTA_H

#include "../base/str.h"

#define VIEW_QUOTA_BYTES 1073741824

/* In bytes. max 0: Redis has no limit, or it is not known yet. */
struct view_memory {
    int64_t used, max;
};

/* Reads used_memory and maxmemory of the answer to INFO
 * (https://redis.io/docs/latest/commands/info/); false: they are not there, and *ret is as it was.
 */
bool view_memory_read(struct str info, struct view_memory *ret);
/* What one of n downstreams may have, in bytes; 0: no new job. */
int64_t view_quota(const struct view_memory *memory, size_t n);

#endif

/* Says of each job that failed whether that is known (common/model/known_failure.h), by what the
 * view has of its downstream. */
#ifndef CRCR_VIEW_KNOWN_FAILURES_H
#define CRCR_VIEW_KNOWN_FAILURES_H

#include "../base/table.h"
#include "../io/redis.h"
#include "../model/result_record.h"

/* What was read of each downstream in the last 2 s. One thread's; begins all zero. */
struct known_cache {
    struct table repos;
};
void known_cache_clear(struct known_cache *cache);

/* Sets known of the jobs that failed on a pull request, of whatever downstreams. Of each of these
 * downstreams that is not in the cache the newest REPO_JOBS_MAX jobs are read; where no job failed
 * nothing is. */
enum err known_failures_mark(struct known_cache *cache, struct redis *r, struct result_record *jobs,
                             size_t n, struct why *why) MUST_CHECK;

#endif

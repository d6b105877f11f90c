/* Jobs that have been in progress for too long: the fold notes when each runs out of time, the
 * sweep takes those that have. */
#ifndef CRCR_VIEW_OVERDUE_H
#define CRCR_VIEW_OVERDUE_H

#include "../io/redis.h"
#include "jobs.h"

struct overdue_job {
    struct result_record job; /* what names it and its target; the rest is unknown */
    int64_t deadline_ms;      /* when its time ran out */
};
struct overdue_list {
    struct overdue_job *at;
    size_t n;
    int64_t past;       /* how many are past their deadline, leased or not */
    int64_t expires_ms; /* of the leases */
};
void overdue_list_clear(struct overdue_list *list);

/* Leases up to most jobs to the caller whose time had run out at now_ms, earliest first (lease.h).
 * Each is to be ended by lease_finish. *ret is the caller's. */
enum err overdue_take(struct redis *r, int64_t now_ms, size_t most, struct overdue_list *ret,
                      struct why *why) MUST_CHECK;
/* Some of the jobs in progress, for going through all: cursor is "0" at first and again after the
 * last. At most about most; *ret is the caller's. */
enum err overdue_scan(struct redis *r, struct buf *cursor, size_t most, struct job_list *ret,
                      struct why *why) MUST_CHECK;

#endif

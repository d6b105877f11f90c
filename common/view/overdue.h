/* Jobs that have been in progress for too long: the fold notes when each runs out of time, the
 * sweep takes those that have. */
#ifndef CRCR_VIEW_OVERDUE_H
#define CRCR_VIEW_OVERDUE_H

#include "../io/redis.h"
#include "jobs.h"

/* Longer than the publishing of a batch takes (topic_writer: 7 s). It is not given back: when it
 * ends the fold has long read what was published. */
#define OVERDUE_LEASE_MS 15000

struct overdue_job {
    struct result_record job; /* what names it and its target; the rest is unknown */
    int64_t deadline_ms;      /* when its time ran out */
};
struct overdue_list {
    struct overdue_job *at;
    size_t n;
};
void overdue_list_clear(struct overdue_list *list);

/* Leases up to most jobs to the caller whose time had run out at now_ms, earliest first; none that
 * is leased already, and none while the view is not consistent (crcr:epoch). *past: how many there
 * are in all. *ret is the caller's. */
enum err overdue_take(struct redis *r, int64_t now_ms, size_t most, struct overdue_list *ret,
                      int64_t *past, struct why *why) MUST_CHECK;
/* Some of the jobs in progress, for going through all: cursor is "0" at first and again after the
 * last. At most about most; *ret is the caller's. */
enum err overdue_scan(struct redis *r, struct buf *cursor, size_t most, struct job_list *ret,
                      struct why *why) MUST_CHECK;
/* Its end is published. A later attempt of the same job stays. */
enum err overdue_remove(struct redis *r, const struct overdue_job *job, struct why *why) MUST_CHECK;

#endif

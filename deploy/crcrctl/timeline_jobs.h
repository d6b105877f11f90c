/* Which callbacks of a delivery count, and what a downstream's jobs come to. PURE. */
#ifndef CRCR_CTL_TIMELINE_JOBS_H
#define CRCR_CTL_TIMELINE_JOBS_H

#include "timeline.h"

/* Of each job of steps[first … end) the callback that says where it stands: of its newest attempt
 * (and of the newest run, where runs are numbers) the one with the highest state, of these the
 * first. Those of one downstream stand together. Gives their number; *ret is the caller's to free,
 * the steps stay the timeline's. */
size_t timeline_jobs(const struct timeline *t, size_t first, size_t end,
                     const struct summary ***ret);

/* What n > 0 jobs of one downstream come to. */
struct timeline_jobs_sum {
    const struct summary *worst; /* failed before open before succeeded */
    size_t n_failed, n_open, n_succeeded;
    int64_t open_since_ms; /* of the open job that was told first; 0: none is open */
    char names[400];       /* of those that are as the worst is: failed or open; cut */
};
void timeline_jobs_sum(struct timeline_jobs_sum *ret, const struct summary *const *jobs, size_t n);

#endif

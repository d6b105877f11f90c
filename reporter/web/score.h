/* The state of a run or a downstream, from its jobs that count: those that jobs_mark_replaced
 * (which_jobs.h) has not marked. PURE. */
#ifndef CRCR_REPORTER_WEB_SCORE_H
#define CRCR_REPORTER_WEB_SCORE_H

#include "../../common/view/dispatches.h"

/* A summary of some jobs. */
struct jobs_score {
    const struct result_record *worst; /* by job_rank; NULL: there is no job */
    size_t jobs, failed, running;
    int64_t began_ms; /* the first dispatch of a job, else its first report; 0: no job has one */
};

/* Of the run that the newest job belongs to; jobs: newest first. */
struct jobs_score score_of_newest_run(const struct result_record *jobs, size_t n);
/* Of one downstream; repo absent: of all. */
struct jobs_score score_of_downstream(const struct result_record *jobs, size_t n, struct str repo);
/* Whether a merge waits for it, or is stopped by it, by its jobs: at L4, until all have ended well.
 * d: its dispatch, or NULL. */
bool score_blocks(const struct jobs_score *score, const struct dispatch_view *d, int64_t level);

#endif

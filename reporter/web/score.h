/* The state of a run or a downstream, from its jobs that count: those that jobs_mark_replaced
 * (job_counts.h) has not marked. PURE. */
#ifndef CRCR_REPORTER_WEB_SCORE_H
#define CRCR_REPORTER_WEB_SCORE_H

#include "../../common/model/result_record.h"

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

#endif

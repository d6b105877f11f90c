/* How a run or a downstream stands, from its jobs that count: jobs_mark_replaced (aggregate.h) was
 * asked which these are. PURE. */
#ifndef CRCR_REPORTER_WEB_SCORE_H
#define CRCR_REPORTER_WEB_SCORE_H

#include "../../common/model/result_record.h"

/* Some jobs together. */
struct jobs_score {
    const struct result_record *worst; /* of its jobs, by job_rank; NULL: there is no job */
    size_t jobs, failed, running;
    int64_t began_ms; /* the earliest that one was dispatched, else heard of; 0: none was */
};

/* Of the run that the newest job belongs to; jobs: newest first. */
struct jobs_score score_of_newest_run(const struct result_record *jobs, size_t n);
/* Of one downstream; repo absent: of all. */
struct jobs_score score_of_downstream(const struct result_record *jobs, size_t n, struct str repo);

#endif

/* How a downstream does, from its newest jobs (behaviour.md, Levels: pass rate). Of each (run, job)
 * only the newest attempt counts. PURE. */
#ifndef CRCR_REPORTER_WEB_SCORE_H
#define CRCR_REPORTER_WEB_SCORE_H

#include "../../common/model/result_record.h"

/* What started the run. */
enum score_kind {
    SCORE_DISPATCHED, /* a dispatch: a pull request, or a push */
    SCORE_SELF,       /* the downstream itself: nightly, periodic */
};

struct score {
    size_t jobs;
    size_t completed;      /* of these; timed out counts */
    size_t successful;     /* of these */
    int64_t queue_mean_ms; /* -1 when no job has one */
};

struct score score_of(const struct result_record *jobs, size_t n, enum score_kind kind);

/* Some jobs together, the newest attempts alone. */
struct jobs_score {
    const struct result_record *worst; /* of its jobs, by job_rank; NULL: there is no job */
    size_t jobs, failed, running;
};

/* Of the run that the newest job belongs to; jobs: newest first. */
struct jobs_score score_of_newest_run(const struct result_record *jobs, size_t n);
/* Of one downstream; repo absent: of all. */
struct jobs_score score_of_downstream(const struct result_record *jobs, size_t n, struct str repo);

#endif

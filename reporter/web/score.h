/* How a downstream does, from its newest jobs (behaviour.md, Levels: pass rate). PURE. */
#ifndef CRCR_REPORTER_WEB_SCORE_H
#define CRCR_REPORTER_WEB_SCORE_H

#include "../../common/model/result_record.h"

struct score {
    size_t jobs;           /* newest attempt of each (run, job) only */
    size_t completed;      /* of these; timed out counts */
    size_t successful;     /* of these */
    int64_t queue_mean_ms; /* -1 when no job has one */
};

struct score score_of(const struct result_record *jobs, size_t n);

#endif

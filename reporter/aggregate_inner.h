/* Which jobs of a delivery count for its aggregate check run (aggregate_jobs.c). PURE. */
#ifndef CRCR_REPORTER_AGGREGATE_INNER_H
#define CRCR_REPORTER_AGGREGATE_INNER_H

#include "aggregate.h"

/* Fills a->jobs, n_jobs and n_replaced: of each job of each run the newest attempt, in the order of
 * jobs_cmp, without what a newer run of the same workflow has replaced:
 *
 *   - what was cancelled or fell silent there: a concurrency group cancels the older of two runs,
 *     and takes away its chance to say so;
 *   - a job that had ended before the newer run began and is run by it too: a re-run by a CI that
 *     gives it a new id. */
void jobs_that_count(const struct aggregate_view *view, struct aggregate *a);

/* By run, workflow, job, newest attempt first. For qsort over pointers to records. */
int jobs_cmp(const void *a, const void *b);
/* 0 for an attempt that is no number. */
int64_t attempt_number(const char *attempt);
/* When the job was first and last heard of; wall clock, 0 unknown. */
int64_t job_first_ms(const struct result_record *job);
int64_t job_last_ms(const struct result_record *job);

#endif

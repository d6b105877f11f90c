/* What a job says, and which jobs of a delivery count beside later attempts and newer runs
 * (reporter/check-runs.md, "The aggregate"). PURE. */
#ifndef CRCR_MODEL_WHICH_JOBS_H
#define CRCR_MODEL_WHICH_JOBS_H

#include "result_record.h"

/* When the job was first and last heard of; wall clock, 0 unknown. */
int64_t job_first_ms(const struct result_record *job);
int64_t job_last_ms(const struct result_record *job);
/* The conclusion of a job that ended, as GitHub takes it; NULL for one that has not. "stale" is
 * GitHub's own to set, and a completed check run needs one: neutral. */
const char *job_conclusion(const struct result_record *job);
/* True when it failed or timed out. Not what was cancelled, nor what should fail (CANARY_REPO). */
bool job_has_failed(const struct result_record *job);

/* Sets replaced of each job: an aggregate of its delivery and downstream, made of the jobs that are
 * there, would not count it. For the pages; jobs of any deliveries and downstreams, in any order.
 * One that lacks a part of its name counts. */
void jobs_mark_replaced(struct result_record *jobs, size_t n);

/* ---- parts, for the aggregate ---- */

/* It has reported, and what jobs_cmp compares is known. */
bool job_is_comparable(const struct result_record *job);
/* By delivery (self-reports: all) and downstream, then by run, workflow, job, newest attempt first.
 * For qsort over pointers to records. */
int jobs_cmp(const void *a, const void *b);
/* Both take jobs of one delivery and downstream in the order of jobs_cmp, drop what does not count,
 * and give how many are left: all but the newest attempt of each job of each run; then what a newer
 * run of the same workflow has replaced. */
size_t jobs_drop_attempts(const struct result_record **jobs, size_t n);
size_t jobs_drop_replaced(const struct result_record **jobs, size_t n);

#endif

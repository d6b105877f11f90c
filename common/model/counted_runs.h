/* Which jobs and runs count in the figures of a downstream, and how long they took. The levels and
 * the hours of the pages are both made of it. PURE.
 *
 *   job   the newest attempt of each (run, job), once it has completed or timed out
 *   run   delivery, workflow and run id; of nightly and periodic runs the run id alone: their
 *         deliveries are names of their own making; once all its jobs have ended */
#ifndef CRCR_MODEL_COUNTED_RUNS_H
#define CRCR_MODEL_COUNTED_RUNS_H

#include "result_record.h"

/* Of a pull request that was dispatched: levels go by these alone. Of another dispatch, a push. Of
 * a nightly or periodic run, which anybody may start as often as he likes. */
enum run_kind { RUN_PULL, RUN_PUSH, RUN_SELF, RUN_KINDS };

/* What is needed of a job. Times are -1 when unknown. */
struct run_job {
    const char *key; /* borrowed from the row: the order where nothing else decides */
    char *run;       /* begins with the repository in lower case and a newline */
    char *job;       /* workflow and name */
    char attempt[RUN_ATTEMPT_MAX + 1];
    enum run_kind kind;
    bool ended, successful;
    bool cancelled, timed_out; /* ended so, and that is no success */
    int64_t queue_ms, execution_ms, started_ms;
    int64_t ended_ms;
    int64_t completed_ms; /* as its CI says, but no later than ended_ms */

    /* Set by counted_runs_find: */
    bool counts;       /* it has ended, and no later attempt replaces it */
    int64_t waited_ms; /* queue_ms; where there is none, a re-run: that of the first attempt */
};
/* ended_ms: when we heard of the end, -1 where nobody knows: then it does not count. */
void run_job_init(struct run_job *ret, const struct result_record *row, int64_t ended_ms);
/* Frees the text; all zero is fine. */
void run_job_clear(struct run_job *job);

struct run_end {
    const struct run_job *job;      /* one of its jobs */
    int64_t ended_ms, completed_ms; /* of the last one */
    int64_t queue_ms;               /* of the run: the shortest of its jobs; -1: none is known */
    int64_t e2e_ms; /* queue + (max(completed) - min(started)); -1: no start is known */
};
/* Sorts the jobs, sets counts and waited_ms of each, and gives how many runs have ended; ret has
 * room for n. The same jobs in another order give the same. */
size_t counted_runs_find(struct run_job **jobs, size_t n, struct run_end *ret);

#endif

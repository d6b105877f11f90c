/* Jobs end with their run. A job of GitHub Actions may end without a report: its runner is lost, a
 * concurrency group cancels it. So when nothing was heard of its run for OPEN_ASK_MS, GitHub is
 * asked about that, and again every OPEN_ASK_MS; when it has ended, its open jobs end with it.
 * PURE.
 */
#ifndef CRCR_REPORTER_ENDED_RUNS_H
#define CRCR_REPORTER_ENDED_RUNS_H

#include "../common/view/runs.h"

#define OPEN_ASK_MS   600000
#define OPEN_RUNS_MAX 20 /* of one commit and downstream; jobs of further runs end by time-out */

struct open_run {
    const char *run_id;  /* borrowed from a job */
    const char *attempt; /* the newest with a job in progress; NULL: none said which */
    int64_t last_ms;     /* the last news of any of its jobs; wall clock */
};

struct open_runs {
    struct open_run at[OPEN_RUNS_MAX];
    size_t n;
};

/* True while GitHub is to be asked about the run of the job. */
bool job_is_open(const struct result_record *job);
/* Finds the runs of n jobs, which are of one commit and downstream. *ret borrows from them. */
void ended_runs_find(const struct result_record *jobs, size_t n, struct open_runs *ret);
/* The run to ask about now; NULL: none is due. *look_ms: when to look again, wall clock; 0: when
 * something comes. */
const char *ended_runs_ask(const struct open_runs *runs, const struct run_answers *answers,
                           int64_t now_ms, int64_t *look_ms);
/* What a job ends with because its run has ended: a conclusion of a check run, static. NULL: it
 * goes on. */
const char *ended_runs_end(const struct open_runs *runs, const struct run_answers *answers,
                           const struct result_record *job, int64_t now_ms);

#endif

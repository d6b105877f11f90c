/* Workflow runs: https://docs.github.com/en/rest/actions/workflow-runs */
#ifndef CRCR_GITHUB_ACTIONS_H
#define CRCR_GITHUB_ACTIONS_H

#include "github.h"

/* POST /repos/{repo}/actions/runs/{run_id}/rerun-failed-jobs, or …/rerun for all jobs. Asynchronous
 * as github_start. "already running" (403) is what was wanted and comes back as OK. A run of which
 * nothing failed has no failed jobs to repeat (403): whoever asked for it wants it all the same, so
 * all its jobs are repeated; the answer is then that of the second call. run_id is digits, else
 * ERR_REFUSE. send_by_ms: as in struct dispatch. */
enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       int64_t send_by_ms, github_answered_fn *done, void *opaque,
                       struct why *why) MUST_CHECK;
/* A workflow run as it is now; borrowed during the callback. */
struct actions_run {
    struct str status;     /* queued, in_progress, completed, waiting, … */
    struct str conclusion; /* absent until it has completed */
    int64_t attempt;
};
/* run is NULL unless answer->err is OK. ERR_UNKNOWN when a 2xx answer cannot be read. */
typedef void actions_run_fn(void *opaque, const struct github_answer *answer,
                            const struct actions_run *run);
/* GET /repos/{repo}/actions/runs/{run_id}; needs `actions: read`. Asynchronous as github_start.
 * run_id is digits, else ERR_REFUSE. */
enum err actions_run_get(struct github *g, struct str repo, struct str run_id, actions_run_fn *done,
                         void *opaque, struct why *why) MUST_CHECK;

#endif

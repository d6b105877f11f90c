/* Workflow runs: https://docs.github.com/en/rest/actions/workflow-runs */
#ifndef CRCR_GITHUB_ACTIONS_H
#define CRCR_GITHUB_ACTIONS_H

#include "github.h"

/* POST /repos/{repo}/actions/runs/{run_id}/rerun-failed-jobs, or …/rerun for all jobs. Asynchronous
 * as github_start. "already running" (403) is what was wanted and comes back as OK. A run of which
 * nothing failed has no failed jobs to repeat (403): whoever asked for it wants it all the same, so
 * all its jobs are repeated; the answer is then that of the second call. run_id is digits, else
 * ERR_REFUSE. */
enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       github_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;

#endif

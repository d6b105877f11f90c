/* Which jobs of a commit have check runs, and on which pull requests (check-runs.md). PURE. */
#ifndef CRCR_REPORTER_WHICH_CHECKS_H
#define CRCR_REPORTER_WHICH_CHECKS_H

#include "wanted_check.h"

/* One pull request that the commit belongs to. */
struct commit_pr {
    int64_t pr;
    const char *labels; /* one a line */
    bool past;          /* it went on to another head (pr_now_is_past) */
};

/* What the view and the allowlist say now; everything is borrowed. */
struct commit_view {
    int level;                   /* tier in force now; 0: no longer listed */
    struct str device;           /* of L3 */
    bool demoted;                /* L3 whose figures fell: no new check runs until they recover */
    const struct commit_pr *prs; /* two pull requests may have the same head */
    size_t n_prs;
    const struct result_record *jobs;
    size_t n_jobs;
};

/* Whether one of the lines, which may be NULL, is ciflow/crcr/<device>, in any case. */
bool labels_have_device(const char *lines, struct str device);
/* Whether a new check run may be started for that pull request. L4: yes. L3: when the pull request
 * carries ciflow/crcr/<device>, and the repo is not demoted. L1, L2, unlisted: no; nor on a commit
 * that the pull request has gone past. */
bool check_may_start(const struct commit_view *view, int64_t pr);
/* One wanted check run a job, in the order of the jobs. Jobs without a pull request (pushes other
 * than ciflow tags, nightly, periodic) have none. to has room for n_jobs; gives how many. Each is
 * to be cleared. */
size_t which_checks_list(const struct commit_view *view, struct wanted_check *to);
/* At most max (workflow, job) pairs have check runs, with all their attempts: those that have one
 * at GitHub already, then those that were heard of first, then by name. The others may start none.
 * Gives how many pairs these are. */
size_t which_checks_limit(struct wanted_check *wanted, const struct check_sent *sent, size_t n,
                          size_t max);
/* True when the pull request has gone past the commit. */
bool commit_is_past(const struct commit_view *view, int64_t pr);

#endif

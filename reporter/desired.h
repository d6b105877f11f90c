/* Which check runs there should be now for a commit and a downstream (behaviour.md, Check runs).
 * What is wanted depends on nothing but the view, so it may be asked at any time, in any order, and
 * as often as one likes. PURE. */
#ifndef CRCR_REPORTER_DESIRED_H
#define CRCR_REPORTER_DESIRED_H

#include "../common/view/checks.h"
#include "aggregate.h"

/* The labels of one pull request, one a line. */
struct pr_labels {
    int64_t pr;
    const char *lines;
};

/* What the view and the allowlist say now; everything is borrowed. */
struct commit_view {
    int level;                   /* tier in force now; 0: no longer listed */
    struct str device;           /* of L3 */
    bool demoted;                /* L3 whose figures fell: no new check runs until they recover */
    const struct pr_labels *prs; /* two pull requests may have the same head */
    size_t n_prs;
    const struct result_record *jobs;
    size_t n_jobs;
};

/* One check run: of one attempt of one job, or the aggregate. */
struct wanted_check {
    bool aggregate; /* completed may be followed by a new check run of the same name */
    const struct result_record *job; /* borrowed; NULL: of the aggregate */
    const char *delivery;            /* borrowed */
    bool may_start;                  /* false: only a check run that exists is kept up to date */
    bool completed;
    const char *status;     /* as GitHub names it */
    const char *conclusion; /* NULL unless completed */
    char *name;
    char *external_id; /* "<run_id>:<pr>"; of the aggregate "d:<delivery>:<pr>" */
    char *slot;        /* tells it from others of the same name: key in crcr:check:* */
    char *marker;      /* first line of the summary: finds it again at GitHub */
    char *details_url; /* or NULL */
    char *title, *summary;
    char started_at[32], completed_at[32]; /* RFC 3339 or "" */
    char digest[17];                       /* of all that GitHub is told */
};

/* L4: yes. L3: when the pull request carries ciflow/crcr/<device>, and the repo is not demoted. L1,
 * L2, unlisted: no. */
bool check_may_start(const struct commit_view *view, int64_t pr);
/* One wanted check a job, in the order of the jobs. Check runs belong to a pull request: jobs
 * without one (pushes other than ciflow tags, nightly, periodic) have none. to has room for n_jobs;
 * gives how many. Each is to be cleared. */
size_t desired_checks(const struct commit_view *view, struct wanted_check *to);
/* The aggregate check run, as it was worked out from view. may_start: check_may_start of the
 * dispatch's pull request. *to is to be cleared. */
void desired_aggregate(const struct aggregate *a, const struct aggregate_view *view, bool may_start,
                       struct wanted_check *to);
/* Where it is remembered what was sent of the aggregate of that repository: the name of the check
 * run is written to name. The slot is a literal. */
struct check_slot aggregate_slot(struct buf *name, const char *repo);
void wanted_check_clear(struct wanted_check *check);

#endif

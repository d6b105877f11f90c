/* The JSON of the HUD pages (reporter/web/json.md shows each). PURE: values in, text out. */
#ifndef CRCR_REPORTER_WEB_API_H
#define CRCR_REPORTER_WEB_API_H

#include "../../common/view/allowlist_feed.h"
#include "../../common/view/checks.h"
#include "../../common/view/commits.h"
#include "../../common/view/dispatches.h"
#include "../../common/view/pull_requests.h"
#include "score.h"
#include "trends.h"

#define RUN_JOBS 100 /* of a downstream, the newest; its last run is looked for among them */

/* jobs_mark_replaced (which_jobs.h) has marked the jobs in all of these.
 *
 * A downstream with its numbers. entry: NULL when it is no longer listed; demotion: NULL when it is
 * not demoted. jobs are newest first; RUN_JOBS of them are looked at. */
void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n,
                  const struct window *window);
/* A row of results, with whether it is replaced, and whether its failure is known. */
void api_put_job(struct buf *to, const struct result_record *job);
/* The member "jobs". */
void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n);

/* The aggregate check run of one back end (check_state.h); all 0: it has none. */
struct check_state {
    struct check_sent sent; /* id 0: it is not there */
    const char *status;     /* absent, queued, in_progress, completed; NULL: there is to be none */
    const char *conclusion; /* of one that completed */
    const char *absent;     /* why: not_dispatched, refused, newer_commit, budget, not_yet */
    int64_t until_ms;       /* budget: when there is room; 0: not known */
    bool blocks;            /* a merge that requires it */
    bool other;             /* it is about a newer delivery of the commit */
};

/* What became of one delivery: each downstream with its dispatch, and all jobs. */
struct api_delivery {
    struct str id;
    const struct result_record *jobs;
    size_t n_jobs;
    const struct dispatch_view *dispatches;
    size_t n_dispatches;
    enum commit_seen commit;                 /* of a nightly or periodic run; else COMMIT_UNKNOWN */
    bool more_jobs;                          /* there are more jobs than these */
    const struct allowlist_version *version; /* NULL: devices and on-calls are not known */
    const struct demotions *demoting;        /* by pull requests; NULL: none */
    int64_t overdue_ms;                      /* how long a dispatch or a job may be silent */
    bool with_clocks;                        /* for the timeline */
    const struct check_state *checks;        /* with it: of each dispatch */
    int64_t now_ms;                          /* for what is late by now */
    const bool *silent; /* in the list: of each dispatch, that it has never reported; NULL: none */
};
void api_put_delivery(struct buf *to, const struct api_delivery *delivery);
/* A pull request in the list. at_ms: its newest event. shown: the delivery that stands for it; its
 * id is absent when none is known. */
void api_put_pr(struct buf *to, int64_t pr, int64_t at_ms, const struct pr_text *text,
                const struct api_delivery *shown);

#endif

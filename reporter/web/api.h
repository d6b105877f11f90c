/* The JSON of the HUD pages (reporter/web/json.md shows each). PURE: values in, text out. */
#ifndef CRCR_REPORTER_WEB_API_H
#define CRCR_REPORTER_WEB_API_H

#include "../../common/view/allowlist_feed.h"
#include "../../common/view/commits.h"
#include "../../common/view/dispatches.h"
#include "../../common/view/pull_requests.h"
#include "score.h"
#include "trends.h"

#define RUN_JOBS 100 /* of a downstream, the newest; where its last run is looked for */

/* In all of them jobs were marked by jobs_mark_replaced (aggregate.h).
 *
 * A downstream with its numbers. entry may be NULL (no longer listed), demotion too (it is not
 * demoted); jobs are newest first, of which RUN_JOBS are looked at. */
void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n,
                  const struct window *window);
/* A row of results, and whether it is replaced. */
void api_put_job(struct buf *to, const struct result_record *job);
/* The member "jobs". */
void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n);

/* What became of one delivery: each downstream with its dispatch, and all jobs. */
struct api_delivery {
    struct str id;
    const struct result_record *jobs;
    size_t n_jobs;
    const struct dispatch_view *dispatches;
    size_t n_dispatches;
    enum commit_seen commit; /* that a nightly or periodic run names; else COMMIT_UNKNOWN */
    bool more_jobs;          /* than these */
    const struct allowlist_version *version; /* NULL: devices and on-calls are not known */
    const struct demotions *demoting;        /* by pull requests; NULL: none */
    /* For the timeline; 0: without it. How long a dispatch or a job may be silent. */
    int64_t silent_ms;
    /* With it: of each dispatch the commit's check run as it was last sent; NULL: there is none. */
    const char *const *checks;
    const bool *silent; /* in the list: of each dispatch, that nobody has reported; NULL: none */
};
void api_put_delivery(struct buf *to, const struct api_delivery *delivery);
/* A pull request in the list of them. at_ms: of its newest event. shown: the delivery that it is
 * shown by, with the absent id where none is known. */
void api_put_pr(struct buf *to, int64_t pr, int64_t at_ms, const struct pr_text *text,
                const struct api_delivery *shown);

#endif

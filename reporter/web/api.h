/* The JSON of the HUD pages (reporter/web/README.md shows each). PURE: values in, text out. */
#ifndef CRCR_REPORTER_WEB_API_H
#define CRCR_REPORTER_WEB_API_H

#include "../../common/model/allowlist.h"
#include "../../common/model/demotions.h"
#include "../../common/view/commits.h"
#include "../../common/view/dispatches.h"
#include "score.h"

/* A downstream with its numbers. entry may be NULL (no longer listed), demotion too (it is not
 * demoted); jobs are newest first. */
void api_put_repo(struct buf *to, struct str repo, const struct allowlist_entry *entry,
                  const struct demotion *demotion, const struct result_record *jobs, size_t n);
void api_put_jobs(struct buf *to, const struct result_record *jobs, size_t n);

/* What became of one delivery: each downstream with its dispatch, and all jobs. */
struct api_delivery {
    struct str id;
    const struct result_record *jobs;
    size_t n_jobs;
    const struct dispatch_view *dispatches;
    size_t n_dispatches;
    enum commit_seen commit; /* that a nightly or periodic run names; else COMMIT_UNKNOWN */
};
void api_put_delivery(struct buf *to, const struct api_delivery *delivery);

#endif

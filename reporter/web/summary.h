/* A downstream in the summary of all, and on its own page. */
#ifndef CRCR_REPORTER_WEB_SUMMARY_H
#define CRCR_REPORTER_WEB_SUMMARY_H

#include "../../common/view/jobs.h"
#include "trends.h"

#define SUMMARY_JOBS 100 /* of each downstream; where its last run is looked for */

/* An entry of "repos". jobs: the newest, at most SUMMARY_JOBS of them are looked at. */
enum err summary_repo_put(struct redis *r, const struct allowlist_version *version, struct str repo,
                          const struct job_list *jobs, struct window *window, int64_t now_ms,
                          struct buf *to, struct why *why) MUST_CHECK;

#endif

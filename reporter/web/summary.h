/* All downstreams (GET /api/crcr/summary), and one entry of that list. */
#ifndef CRCR_REPORTER_WEB_SUMMARY_H
#define CRCR_REPORTER_WEB_SUMMARY_H

#include "../../common/view/jobs.h"
#include "../reporter.h"
#include "trends.h"

#define SUMMARY_JOBS 100 /* of each downstream; where its last run is looked for */

/* days: of the window. The allowlist is taken from the reporter's feed. */
enum err summary_put(struct redis *r, const struct reporter *reporter, int64_t days, int64_t now_ms,
                     struct buf *to, struct why *why) MUST_CHECK;
/* An entry of its repos. jobs: the newest, at most SUMMARY_JOBS of them are looked at. */
enum err summary_repo_put(struct redis *r, const struct allowlist_version *version, struct str repo,
                          const struct job_list *jobs, struct window *window, int64_t now_ms,
                          struct buf *to, struct why *why) MUST_CHECK;

#endif

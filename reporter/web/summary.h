/* A downstream in the summary of all, and on its own page. */
#ifndef CRCR_REPORTER_WEB_SUMMARY_H
#define CRCR_REPORTER_WEB_SUMMARY_H

#include "../../common/view/jobs.h"
#include "paths.h"
#include "trends.h"

/* An entry of "repos". jobs: as for api_put_repo. */
enum err summary_repo_put(const struct web_view *w, const struct allowlist_version *version,
                          struct str repo, const struct job_list *jobs, struct window *window,
                          struct buf *to, struct why *why) MUST_CHECK;

#endif

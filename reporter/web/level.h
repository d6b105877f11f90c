/* Whether the newest jobs of a downstream meet the criteria of its level. */
#ifndef CRCR_REPORTER_WEB_LEVEL_H
#define CRCR_REPORTER_WEB_LEVEL_H

#include "../../common/model/levels.h"
#include "paths.h"

/* From the newest 1,000 jobs of pull requests in the view. *from_ms: where they begin, later than
 * the window does when there are more jobs than are kept. Errors: the view is unavailable. */
enum err level_of_repo(const struct web_view *w, struct str repo, int level, int64_t now_ms,
                       int64_t *from_ms, struct level_verdict *ret, struct why *why) MUST_CHECK;

#endif

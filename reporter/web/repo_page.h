/* One back end: its object with its newest jobs, and its badge, read from the view. */
#ifndef CRCR_REPORTER_WEB_REPO_PAGE_H
#define CRCR_REPORTER_WEB_REPO_PAGE_H

#include "../../common/view/allowlist_feed.h"
#include "../../common/view/jobs.h"

/* What is asked for. */
struct repo_query {
    struct str repo;
    int64_t before_ms; /* jobs whose newest fact came before; 0: the newest */
};
/* GET /api/crcr/repos/<owner>/<repo>. *known: it is listed, or has jobs. */
enum err repo_page_put(struct redis *r, struct allowlist_feed *feed, const struct repo_query *query,
                       struct buf *to, bool *known, struct why *why) MUST_CHECK;
/* GET /repo/<owner>/<repo>/badge.svg, an SVG image; when it is not known a grey one that says so.
 */
enum err badge_page_put(struct redis *r, struct allowlist_feed *feed, struct str repo,
                        struct buf *to, bool *known, struct why *why) MUST_CHECK;

#endif

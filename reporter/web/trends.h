/* The results of downstreams over time, as JSON, from the hours and days that the sweep counts
 * (common/view/hours.h; reporter/web/json.md shows it). */
#ifndef CRCR_REPORTER_WEB_TRENDS_H
#define CRCR_REPORTER_WEB_TRENDS_H

#include "../../common/view/allowlist_feed.h"
#include "../../common/view/hours.h"

/* The default of the pages. */
#define DEFAULT_DAYS 7

/* The points of a window, oldest first: the last 24 hours, or today (UTC) and the days before. */
struct window {
    int64_t days, now_ms;
    size_t n;
    struct hours_point *at;
};
void window_clear(struct window *w);
/* Reads the points of a downstream. It may be called again for another one. *w begins as { .days =
 * …, .now_ms = … }, and is the caller's also after an error. */
enum err window_read(struct redis *r, struct str repo, struct window *w,
                     struct why *why) MUST_CHECK;
/* "window":{days, pull_requests:{…}, nightly:{…}},"spark":[{at, completed, successful}, …]; spark
 * is of pull requests and pushes. */
void window_put(struct buf *to, const struct window *w);

#endif

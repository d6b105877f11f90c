/* The list of pull requests (GET /api/crcr/prs), read from the view. */
#ifndef CRCR_REPORTER_WEB_PR_LIST_H
#define CRCR_REPORTER_WEB_PR_LIST_H

#include "../../common/base/buf.h"
#include "../../common/io/redis.h"

struct pr_query {
    struct str text;   /* in number, title or author, in any case; absent: all */
    int64_t before_ms; /* those whose newest event is older; 0: all */
};

/* {"prs": [the newest 25 of those], "before": for the next 25, or null}. */
enum err pr_list_put(struct redis *r, const struct pr_query *query, struct buf *to,
                     struct why *why) MUST_CHECK;

#endif

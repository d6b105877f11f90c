/* The list of pull requests (GET /api/crcr/prs), read from the view. */
#ifndef CRCR_REPORTER_WEB_PR_LIST_H
#define CRCR_REPORTER_WEB_PR_LIST_H

#include "../../common/base/buf.h"
#include "../../common/io/redis.h"

struct pr_query {
    struct str text; /* in number, title or author, in any case; absent: all */
    struct str
        state; /* failing (a job failed), else running (one runs), else passing; absent: all */
    struct str before; /* "before" of an answer: those that come behind it; absent: all */
};

/* {"prs": [the newest 25 of those], "before": for the next ones, or null}. With a state it looks at
 * 100 pull requests at most, so that there may be fewer, and more behind before. */
enum err pr_list_put(struct redis *r, const struct pr_query *query, struct buf *to,
                     struct why *why) MUST_CHECK;

#endif

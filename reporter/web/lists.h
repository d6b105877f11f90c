/* The long lists of the view that answers are cut from. Each is read once in 2 s, whatever is asked
 * of it, and then filtered in memory: a search or a page number costs Redis nothing. One thread's.
 */
#ifndef CRCR_REPORTER_WEB_LISTS_H
#define CRCR_REPORTER_WEB_LISTS_H

#include "../../common/base/buf.h"
#include "../../common/view/pull_requests.h"

struct lists;

struct lists *lists_new(void);
/* NULL is fine. */
void lists_free(struct lists *l);

/* The newest jobs of a downstream, REPO_JOBS_MAX at most, marked (jobs_mark_replaced). Of eight
 * downstreams they are kept. Borrowed until the next call. */
enum err lists_jobs(struct lists *l, struct redis *r, struct str repo, const struct job_list **ret,
                    struct why *why) MUST_CHECK;

/* One pull request of the list, as far as it was asked for. */
struct pr_row {
    const char *state; /* NULL: it was not read yet */
    struct buf json;
};
struct pr_list {
    int64_t read_ms;       /* monotonic; 0: never */
    struct view_index prs; /* the newest first */
    struct pr_text *texts; /* of each */
    struct pr_row *rows;   /* of each; whoever needs one fills it */
};
/* Borrowed until the next call. */
enum err lists_prs(struct lists *l, struct redis *r, struct pr_list **ret,
                   struct why *why) MUST_CHECK;

#endif

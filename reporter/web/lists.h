/* The long lists of the view. Each is read at most once in 2 s and then filtered in memory, so that
 * searches and page numbers cost Redis nothing. For one thread. */
#ifndef CRCR_REPORTER_WEB_LISTS_H
#define CRCR_REPORTER_WEB_LISTS_H

#include "../../common/base/buf.h"
#include "../../common/view/pull_requests.h"

struct lists;

struct lists *lists_new(void);
/* NULL is fine. */
void lists_free(struct lists *l);

/* The newest jobs of a downstream, at most REPO_JOBS_MAX, marked (jobs_mark_replaced). The lists of
 * eight downstreams are kept. Borrowed until the next call. */
enum err lists_jobs(struct lists *l, struct redis *r, struct str repo, const struct job_list **ret,
                    struct why *why) MUST_CHECK;

/* Sets known of each job that failed (common/view/known_failures.h). */
enum err lists_known(struct lists *l, struct redis *r, struct job_list *jobs,
                     struct why *why) MUST_CHECK;

/* How one back end does with a pull request: what its state is made of. */
struct pr_part {
    char repo[REPO_MAX + 1];
    int64_t level;
    bool failed, running, ended;
};
/* One pull request of the list. Its fields are filled when they are needed. */
struct pr_row {
    bool read; /* else it was not yet */
    bool more_jobs;
    struct pr_part *parts;
    size_t n;
    struct buf json;
};
struct pr_list {
    int64_t read_ms;       /* monotonic; 0: never */
    struct view_index prs; /* the newest first */
    struct pr_text *texts; /* of each */
    struct pr_row *rows;   /* of each */
};
/* Borrowed until the next call. */
enum err lists_prs(struct lists *l, struct redis *r, struct pr_list **ret,
                   struct why *why) MUST_CHECK;

#endif

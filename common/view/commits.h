/* Commits of the upstream: those of its default branch in order (crcr:main), and whether one exists
 * that only a run names (crcr:commit:<sha>). */
#ifndef CRCR_VIEW_COMMITS_H
#define CRCR_VIEW_COMMITS_H

#include "../model/push.h"
#include "entries.h"

/* The newest commits of the default branch in the order in which they were pushed, from the push
 * webhooks that the relay has seen. A push that it has not seen is missing: the parents show it. */
#define MAIN_MAX 1000 /* that crcr:main keeps */

/* push is borrowed for the call; its pushed_s is set. Collect with view_fold_collect. */
enum err main_fold_queue(struct redis *r, const struct push *push, const struct view_times *times,
                         struct why *why) MUST_CHECK;

/* Frees the commits; an empty list is fine. */
void main_list_clear(struct main_list *list);
/* All of them; *ret is the caller's. */
enum err main_commits_get(struct redis *r, struct main_list *ret, struct why *why) MUST_CHECK;

/* What nightly and periodic runs report names a commit that no webhook vouches for. */
enum commit_seen {
    COMMIT_UNKNOWN,
    COMMIT_ASKED, /* a repository's rate paid for the question; no answer yet */
    COMMIT_ABSENT,
    COMMIT_EXISTS,
};
enum err commit_seen_get(struct redis *r, struct str sha, enum commit_seen *ret,
                         struct why *why) MUST_CHECK;
/* seen: not COMMIT_UNKNOWN. */
enum err commit_seen_put(struct redis *r, struct str sha, enum commit_seen seen,
                         const struct view_times *times, struct why *why) MUST_CHECK;

#endif

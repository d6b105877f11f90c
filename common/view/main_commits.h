/* The newest commits of the upstream's default branch, in the order in which they were pushed
 * (crcr:main), from the push webhooks that the relay has seen. A push that it has not seen is
 * missing there: the parents show it. */
#ifndef CRCR_VIEW_MAIN_COMMITS_H
#define CRCR_VIEW_MAIN_COMMITS_H

#include "../model/push.h"
#include "entries.h"

#define MAIN_MAX 1000 /* that crcr:main keeps */

/* push is borrowed for the call; its pushed_s is set. Collect with view_fold_collect. */
enum err main_fold_queue(struct redis *r, const struct push *push, const struct view_times *times,
                         struct why *why) MUST_CHECK;

struct main_commit {
    struct push_commit commit;
    int64_t pushed_ms;
};
struct main_list {
    struct main_commit *at; /* newest first */
    size_t n;
};
/* Frees the commits; an empty list is fine. */
void main_list_clear(struct main_list *list);
/* All of them; *ret is the caller's. */
enum err main_commits_get(struct redis *r, struct main_list *ret, struct why *why) MUST_CHECK;

#endif

/* Outcomes of dispatches in the view (crcr:dispatch:*): one hash a (delivery, downstream), folded
 * from the topic dispatches (fold_dispatch.lua). */
#ifndef CRCR_VIEW_DISPATCHES_H
#define CRCR_VIEW_DISPATCHES_H

#include "../model/task.h"
#include "entries.h"

struct dispatch_view {
    char delivery[DELIVERY_MAX + 1]; /* "" in older hashes */
    char outcome[16];                /* outcome_kind_name */
    char repo[REPO_MAX + 1];
    char event_type[16];
    char action[64]; /* of the event; "" if it has none, and in older hashes */
    char head_sha[SHA_MAX + 1];
    char error[512];
    int64_t level, pr, http_status, attempt;
    int64_t received_ms;   /* when the delivery came; 0 in older hashes */
    int64_t at_ms;         /* the outcome's */
    int64_t dispatched_ms; /* when the call was sent; 0: it was not, or is not known to be */
    int64_t next_ms;       /* of the outcomes waiting and unknown: the next try; 0: not known */
    enum task_mark maybe_duplicate;
};

/* Folds the outcome of a task of kind dispatch; a re-run is not folded (its jobs are enough).
 * Collect with view_fold_collect. */
enum err dispatch_fold_queue(struct redis *r, const struct outcome *outcome,
                             const struct view_times *times, struct why *why) MUST_CHECK;

enum err dispatch_view_get(struct redis *r, struct str delivery, struct str repo, bool *found,
                           struct dispatch_view *ret, struct why *why) MUST_CHECK;
/* The first dispatches of a delivery by time, at most limit; *ret is malloc'ed, the caller's, n
 * entries. */
enum err dispatches_of_delivery(struct redis *r, struct str delivery, size_t limit,
                                struct dispatch_view **ret, size_t *n, struct why *why) MUST_CHECK;
/* The dispatch that the aggregate check run of a commit and downstream shows: the newest (by
 * arrival of its delivery) that was not superseded, else the newest. Only L3 and L4 count, and only
 * pull_request events other than closed, and pushes of ciflow tags. */
enum err dispatch_of_head(struct redis *r, struct str sha, struct str repo, bool *found,
                          struct dispatch_view *ret, struct why *why) MUST_CHECK;

/* When the first report of a dispatch is due, silent_ms after it: a back end of which no job counts
 * by then has never reported, and its check run is timed out. 0: none is due, at L1, of a closed
 * pull request, or where the dispatch was refused, superseded or skipped. PURE, as the next. */
int64_t dispatch_report_due_ms(const struct dispatch_view *d, int64_t silent_ms);
/* jobs: how many of it count (aggregate.h). */
bool dispatch_never_reported(const struct dispatch_view *d, size_t jobs, int64_t silent_ms,
                             int64_t now_ms);
/* It is tried again by itself: it waits, or GitHub's answer was not seen. */
bool dispatch_is_open(const struct dispatch_view *d);
/* No call will come of it: it was superseded, or skipped. */
bool dispatch_was_dropped(const struct dispatch_view *d);

#endif

/* Whether the view is consistent (crcr:epoch), and who rebuilds it (crcr:rebuild).
 *
 *   crcr:epoch missing ──lease taken──▶ rebuilding ──all read, lease still held──▶ crcr:epoch set
 *        ▲    ▲                             │
 *        │    └── lease expired, given up ──┘
 *        └── flushed, restarted empty, dropped by hand
 *
 * While crcr:epoch is missing only the owner of the lease folds into the view, and an entry that is
 * missing proves nothing. The lease has a fence, a number that only grows, also across a flush.
 * Every step of a rebuild sends it and is refused once another has the lease. Times are Redis's, so
 * the replicas' clock skew does not matter. */
#ifndef CRCR_VIEW_EPOCH_H
#define CRCR_VIEW_EPOCH_H

#include "../io/redis.h"

/* The lease expires when its owner has not renewed it for so long. */
#define VIEW_LEASE_MS 15000

/* The last rebuild, or the one in progress (crcr:rebuild). */
struct view_rebuild {
    bool consistent; /* crcr:epoch exists */
    char state[16];  /* "" never, "wanted", "running", "waiting" (no owner: given back, or expired),
                        "done" */
    char phase[16];  /* the topic being read */
    char owner[128]; /* of the lease */
    int64_t done, total; /* records read, in all phases */
    int64_t started_ms;  /* wall clock of Redis, 0: unknown */
    int64_t ended_ms;    /* 0: not ended */
};
enum err view_rebuild_get(struct redis *r, struct view_rebuild *ret, struct why *why) MUST_CHECK;
/* Deletes the epoch, so that a reporter rebuilds the view over its present content; returns at
 * once. Until the rebuild begins crcr:rebuild says "wanted". No effect while a rebuild runs. */
enum err view_epoch_drop(struct redis *r, struct why *why) MUST_CHECK;

/* The epoch's number, 0 while the view is inconsistent. If it is the same before and after other
 * reads, those reads saw a consistent view. */
enum err view_epoch_get(struct redis *r, int64_t *ret, struct why *why) MUST_CHECK;
/* True if the last fold was refused because the view is inconsistent, or another has the lease. */
bool view_is_inconsistent(const struct redis *r);

enum view_lease {
    VIEW_LEASE_TAKEN,
    VIEW_LEASE_BUSY,       /* another is rebuilding */
    VIEW_LEASE_CONSISTENT, /* nothing to do */
};
/* owner: unique to a process; the same owner may take its lease again, with a new fence. */
enum err view_lease_take(struct redis *r, const char *owner, enum view_lease *ret, int64_t *fence,
                         struct why *why) MUST_CHECK;
/* Renews the lease and stores the progress. ERR_REFUSE: another has the lease. */
enum err view_lease_renew(struct redis *r, int64_t fence, const char *phase, int64_t done,
                          int64_t total, struct why *why) MUST_CHECK;
/* Gives up the lease before the rebuild is done, so that another may take it at once. */
enum err view_lease_release(struct redis *r, int64_t fence, struct why *why) MUST_CHECK;
/* Sets the epoch and ends the lease. ERR_REFUSE: another has the lease; nothing was set. */
enum err view_lease_finish(struct redis *r, int64_t fence, int64_t done,
                           struct why *why) MUST_CHECK;

#endif

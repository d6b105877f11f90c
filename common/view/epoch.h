/* Whether the view is consistent (crcr:epoch), and who is making it so again (crcr:rebuild).
 *
 *   crcr:epoch missing ──lease taken──▶ rebuilding ──all read, lease still held──▶ crcr:epoch set
 *        ▲    ▲                             │
 *        │    └── lease ran out, given up ──┘
 *        └── flushed, restarted empty, dropped by hand
 *
 * While it is missing nothing is folded into the view but by the holder of the lease, and nobody
 * draws a conclusion from what the view lacks. The lease carries a fence, a number that only grows,
 * also over a flush: every step of a rebuild names it and is refused once another holds the lease.
 * Time is Redis's own, so clocks of replicas do not matter. */
#ifndef CRCR_VIEW_EPOCH_H
#define CRCR_VIEW_EPOCH_H

#include "../io/redis.h"

/* How long a holder may be silent before another takes over. */
#define VIEW_LEASE_MS 15000

/* What crcr:rebuild says of the last rebuild, or of the one under way. */
struct view_rebuild {
    bool consistent; /* crcr:epoch is there */
    char state[16];  /* "" never, "wanted", "running", "waiting" (nobody holds it: given back, or
                        run out), "done" */
    char phase[16];  /* the topic being read */
    char owner[128]; /* of the lease */
    int64_t done, total; /* records read, of all phases */
    int64_t started_ms;  /* wall clock of Redis, 0: unknown */
    int64_t ended_ms;    /* 0: not ended */
};
enum err view_rebuild_get(struct redis *r, struct view_rebuild *ret, struct why *why) MUST_CHECK;
/* Takes the epoch away, so that a reporter rebuilds the view over what is there; returns at once.
 * Until that has begun crcr:rebuild says "wanted". Nothing changes when a rebuild is under way. */
enum err view_epoch_drop(struct redis *r, struct why *why) MUST_CHECK;

/* The epoch's number, 0 while the view is inconsistent. Two reads that give the same number enclose
 * reads of a consistent view. */
enum err view_epoch_get(struct redis *r, int64_t *ret, struct why *why) MUST_CHECK;
/* True when a fold has just been refused because the view is inconsistent, or the fence is not the
 * holder's any more. */
bool view_is_inconsistent(const struct redis *r);

enum view_lease {
    VIEW_LEASE_TAKEN,
    VIEW_LEASE_BUSY,       /* another is rebuilding */
    VIEW_LEASE_CONSISTENT, /* there is nothing to do */
};
/* owner: unique to a process; the same owner may take its lease again, with a new fence. */
enum err view_lease_take(struct redis *r, const char *owner, enum view_lease *ret, int64_t *fence,
                         struct why *why) MUST_CHECK;
/* Prolongs the lease and notes how far it is. ERR_REFUSE: it is not ours any more. */
enum err view_lease_renew(struct redis *r, int64_t fence, const char *phase, int64_t done,
                          int64_t total, struct why *why) MUST_CHECK;
/* Gives the lease back before the end, so that another may take over at once. */
enum err view_lease_release(struct redis *r, int64_t fence, struct why *why) MUST_CHECK;
/* Sets the epoch and ends the lease. ERR_REFUSE: it is not ours any more, nothing was set. */
enum err view_lease_finish(struct redis *r, int64_t fence, int64_t done,
                           struct why *why) MUST_CHECK;

#endif

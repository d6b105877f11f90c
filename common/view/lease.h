/* Leases: "mine until", so that only one of several replicas does the work. The lease of a replica
 * that died expires by Redis's own clock. */
#ifndef CRCR_VIEW_LEASE_H
#define CRCR_VIEW_LEASE_H

#include "indexes.h"

enum lease_of {
    LEASE_COMMENT, /* <pr>/<repo>: writes its comment; 2 min, enough for all its calls */
    /* Members of sorted sets by time. They last LEASE_SET_MS: longer than publishing a batch takes
     * (7 s). */
    LEASE_DUE,     /* crcr:due: commits and downstreams to reconcile again */
    LEASE_TALLY,   /* crcr:tally: deliveries and downstreams whose jobs must be counted */
    LEASE_OVERDUE, /* crcr:zombies: jobs in progress, by deadline */
};
#define LEASE_SET_MS 15000

/* *expires_ms identifies the lease for lease_finish; 0: another owner has it. */
enum err lease_take(struct redis *r, enum lease_of of, struct str member, int64_t *expires_ms,
                    struct why *why) MUST_CHECK;

struct leases {
    struct view_index members; /* at_ms: when each was due */
    int64_t expires_ms;        /* of all */
    int64_t past;              /* how many are due, including those that others have */
};
void leases_clear(struct leases *list);
/* Leases at most `most` members of the set that are due at now_ms and not leased, earliest first;
 * none while the view is inconsistent. They stay in the set. *ret is the caller's. */
enum err lease_take_due(struct redis *r, enum lease_of of, int64_t now_ms, size_t most,
                        struct leases *ret, struct why *why) MUST_CHECK;

/* Ends a lease and removes the member from its set, unless the member is now due at another time
 * than due_ms. Does nothing if the lease was revoked, or expired and taken by another owner. */
enum err lease_finish(struct redis *r, enum lease_of of, struct str member, int64_t expires_ms,
                      int64_t due_ms, struct why *why) MUST_CHECK;

#endif

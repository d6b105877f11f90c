/* Leases: "mine until", so that of several replicas one does a thing. Who dies keeps none longer
 * than until then, by Redis's own clock. */
#ifndef CRCR_VIEW_LEASE_H
#define CRCR_VIEW_LEASE_H

#include "indexes.h"

enum lease_of {
    LEASE_COMMENT, /* <pr>/<repo>: who writes its comment; 2 minutes, which all calls for one fit in
                    */
    /* Of sets by time; LEASE_SET_MS, which is longer than publishing a batch takes (7 s). */
    LEASE_DUE,     /* crcr:due: commits and downstreams that are to be looked at again */
    LEASE_TALLY,   /* crcr:tally: deliveries and downstreams whose jobs are to be counted */
    LEASE_OVERDUE, /* crcr:zombies: jobs in progress, by deadline */
};
#define LEASE_SET_MS 15000

/* *expires_ms: names the lease at its end; 0: another has it. */
enum err lease_take(struct redis *r, enum lease_of of, struct str member, int64_t *expires_ms,
                    struct why *why) MUST_CHECK;

struct leases {
    struct view_index members; /* with when each was due */
    int64_t expires_ms;        /* of all */
    int64_t past;              /* how many are due, those of other holders too */
};
void leases_clear(struct leases *list);
/* Of the set the members that are due at now_ms and that nobody has, at most most, earliest first;
 * none while the view is inconsistent. They stay in the set. *ret is the caller's. */
enum err lease_take_due(struct redis *r, enum lease_of of, int64_t now_ms, size_t most,
                        struct leases *ret, struct why *why) MUST_CHECK;

/* Ends a lease. due_ms: when the member was due; it leaves its set, unless it is due at another
 * time by now. Nothing happens when the lease has expired and another has it, or was revoked. */
enum err lease_finish(struct redis *r, enum lease_of of, struct str member, int64_t expires_ms,
                      int64_t due_ms, struct why *why) MUST_CHECK;

#endif

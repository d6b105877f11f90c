/* What is to be looked at again at some time: commits and downstreams in the sorted set crcr:due.
 * The reconciler notes when, the sweep marks them dirty then (LEASE_DUE of lease.h). */
#ifndef CRCR_VIEW_DUE_H
#define CRCR_VIEW_DUE_H

#include "../io/redis.h"

/* Look at member (<sha>/<repo>) of crcr:due again at at_ms, whatever was noted before; 0: no more.
 * A sweeper that has it loses its lease first, so that its end does not undo this. */
enum err due_set(struct redis *r, struct str member, int64_t at_ms, struct why *why) MUST_CHECK;

#endif

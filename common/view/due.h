/* What is to be looked at again at some time, in sorted sets. crcr:due: commits and downstreams;
 * the reconciler notes when, the sweep marks them dirty then. crcr:tally: deliveries and
 * downstreams; the fold notes them, the sweep counts their jobs. */
#ifndef CRCR_VIEW_DUE_H
#define CRCR_VIEW_DUE_H

#include "indexes.h"

/* Longer than the publishing of a batch takes (topic_writer: 7 s). */
#define DUE_LEASE_MS 15000

/* Look at member (<sha>/<repo>) of crcr:due again at at_ms, whatever was noted before; 0: no more.
 */
enum err due_set(struct redis *r, struct str member, int64_t at_ms, struct why *why) MUST_CHECK;
/* key: KEY_DUE or KEY_TALLY. Takes up to most members whose time had come at now_ms, earliest
 * first, and puts their time off by the lease, so that no other sweeper takes them meanwhile, and
 * one that dies loses none. None while the view is not consistent (crcr:epoch). at_ms of each is
 * the end of the lease, which is odd, so that fold.lua knows it from a mark. *past: how many there
 * were. *ret is the caller's. */
enum err due_take(struct redis *r, const char *key, int64_t now_ms, size_t most,
                  struct view_index *ret, int64_t *past, struct why *why) MUST_CHECK;
/* It is done. A time that was noted since it was taken stays. */
enum err due_remove(struct redis *r, const char *key, const struct view_index_entry *taken,
                    struct why *why) MUST_CHECK;

#endif

/* The part of the sweep that counts: deliveries whose jobs have changed (crcr:tally) → the hours of
 * their downstreams (common/view/hours.h). A sweeper that dies in between leaves the mark, and the
 * next count adds only what differs. */
#ifndef CRCR_REPORTER_SWEEP_TALLY_H
#define CRCR_REPORTER_SWEEP_TALLY_H

#include "../common/io/redis.h"

/* Counts at most `most` of those whose time had come at now_ms; what is counted is remembered for
 * ttl_s. *n: how many were looked at. One that Redis refuses to give holds up no other: it is
 * logged and left, as what failed otherwise, and taken again when its lease has run out. */
enum err sweep_tally(struct redis *r, int64_t now_ms, int64_t ttl_s, size_t most, size_t *n,
                     struct why *why) MUST_CHECK;

#endif

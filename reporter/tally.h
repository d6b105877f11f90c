/* The jobs of one delivery and downstream → what they add to its hours (common/view/hours.h). The
 * figures are those of `crcrctl levels` (behaviour.md, Levels): the newest attempt of each (run,
 * job) counts; a re-run keeps the queue time of the first attempt; a run is measured once all its
 * jobs have ended. PURE.
 *
 *   a job   in the hour in which it ended, by the relay's clock
 *   a run   (workflow and run id) in the hour in which the last of its jobs ended */
#ifndef CRCR_REPORTER_TALLY_H
#define CRCR_REPORTER_TALLY_H

#include "../common/base/buf.h"
#include "../common/model/result_record.h"

/* Appends the lines; the same jobs in another order give the same. A job that ended at a time that
 * nobody knows is left out. */
void tally(const struct result_record *jobs, size_t n, struct buf *to);

#endif

/* The jobs of one delivery and downstream → what they add to its hours (common/view/hours.h). Which
 * jobs and runs count, and their times, is as in `crcrctl levels` (counted_runs.h). PURE.
 *
 *   a job   in the hour in which it ended, by the relay's clock
 *   a run   in the hour in which the last of its jobs ended */
#ifndef CRCR_REPORTER_TALLY_H
#define CRCR_REPORTER_TALLY_H

#include "../common/base/buf.h"
#include "../common/model/result_record.h"

/* Appends the lines; the same jobs in another order give the same. A job that ended at a time that
 * nobody knows is left out. */
void tally(const struct result_record *rows, size_t n, struct buf *to);

#endif

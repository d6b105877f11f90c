/* The items of the scorecard that the relay sees by itself: public results, flaky tests, outages
 * (behaviour.md, Compute-platform scorecard). PURE. */
#ifndef CRCR_CTL_SCORE_MEASURE_H
#define CRCR_CTL_SCORE_MEASURE_H

#include "../../common/model/result_record.h"
#include "scorecard.h"

#define SCORE_FLAKY_PCT 5.0
#define SCORE_OUTAGE_MS (3 * 24 * 3600 * (int64_t)1000)

struct score_measure;

/* repo is copied. */
struct score_measure *score_measure_new(struct str repo);
void score_measure_free(struct score_measure *m);
/* One row of the topic results, in any order; those of others and of jobs that have not ended do
 * not count. */
void score_measure_put(struct score_measure *m, const struct result_record *row,
                       int64_t written_ms);
/* Puts what was seen until now_ms into the card's items, marked measured. Without a job that ended
 * they stay as the file has them, and note says so.
 *
 *   public   the results of a repository at L2 and up are on the HUD, for everybody
 *   flaky    jobs that failed in one attempt of a run and succeeded in another, of those that ended
 *   outage   the longest time with jobs that ended and none that succeeded */
void score_measure_fill(struct score_measure *m, int64_t now_ms, struct scorecard *card);

#endif

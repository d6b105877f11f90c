/* The last 24 hours of the topic `dispatches`: how many calls, how fast, and which breakers are
 * open. Outcomes may come in any order: partitions are read one after the other. PURE. */
#ifndef CRCR_REPORTER_WEB_DISPATCH_DAY_H
#define CRCR_REPORTER_WEB_DISPATCH_DAY_H

#include "../../common/model/task.h"

#define DISPATCH_DAY_MS     (24 * 3600 * 1000LL)
#define DISPATCH_FAILED_MAX 20 /* calls in a row that are counted */

struct dispatch_day;
struct dispatch_day *dispatch_day_new(void);
/* NULL is fine. */
void dispatch_day_free(struct dispatch_day *d);
void dispatch_day_add(struct dispatch_day *d, const struct outcome *o, int64_t now_ms);

/* The members "dispatches" and "breakers" of /api/crcr/health. d NULL: the topic is still being
 * read.
 *
 * Dispatches: the outcomes in this hour and the 23 before it, dispatches only, no re-runs. Times:
 * from the webhook's last byte to the call, without redelivered and replayed ones; quantiles as in
 * figures.h.
 *
 * The breaker of a downstream counts as open when tasks were put off since its last answer, within
 * the last 15 minutes: a sender then forgets a breaker that is not used (common/github/gate.h). One
 * sender's is enough: replicas have breakers of their own. All are counted, 50 are named. */
void dispatch_day_put(struct buf *to, const struct dispatch_day *d, int64_t now_ms);
/* The member "dispatches" of a back end in the summary: how its calls of the last 24 hours went;
 * null: there was none, or the topic is being read.
 *
 * failed_in_a_row: calls without effect since the newest that GitHub took (refused, no answer, 5xx,
 * or put off after such a failure). silent_since: GitHub took a dispatch then, silent_ms have
 * passed, and nothing was heard since (heard_ms, 0: never); of each hour the first one counts.
 * silent_ms 0: nothing is expected. */
void dispatch_day_put_one(struct buf *to, const struct dispatch_day *d, struct str repo,
                          int64_t heard_ms, int64_t silent_ms, int64_t now_ms);

#endif

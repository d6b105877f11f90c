/* What the topic `dispatches` says of the last 24 hours: how many calls, how fast, and which
 * breakers are open. The order of the outcomes does not matter: partitions are read one
 * after the other. PURE. */
#ifndef CRCR_REPORTER_WEB_DISPATCH_DAY_H
#define CRCR_REPORTER_WEB_DISPATCH_DAY_H

#include "../../common/model/task.h"

#define DISPATCH_DAY_MS (24 * 3600 * 1000LL)

struct dispatch_day;
struct dispatch_day *dispatch_day_new(void);
/* NULL is fine. */
void dispatch_day_free(struct dispatch_day *d);
void dispatch_day_add(struct dispatch_day *d, const struct outcome *o, int64_t now_ms);

/* The members "dispatches" and "breakers" of /api/crcr/health. NULL: the topic is being read.
 *
 * Dispatches are outcomes of that kind in the hour that runs and the 23 before it. Their times are
 * from the webhook's last byte to the call, of those that were dispatched and are neither
 * redelivered nor replayed, as figures.h has quantiles.
 *
 * A breaker is open of a downstream whose tasks were put off since its last answer, and within 15
 * minutes: by then a sender forgets one that nobody asked for (common/github/gate.h). Any sender's:
 * replicas have breakers of their own. All are counted, and 50 named. */
void dispatch_day_put(struct buf *to, const struct dispatch_day *d, int64_t now_ms);

#endif

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

/* Of the hour that runs and the 23 before it; outcomes of kind dispatch. */
struct dispatch_sums {
    int64_t dispatched, failed;
    /* From the webhook's last byte to the call, of those that were dispatched and are neither
     * redelivered nor replayed: up to 19 % above the true one, in ms; -1: there is none. */
    int64_t p50_ms, p99_ms;
};
struct dispatch_sums dispatch_day_sums(const struct dispatch_day *d, int64_t now_ms);

/* A downstream whose tasks were put off since its last answer, because a sender's breaker is open;
 * and within 15 minutes: by then a sender forgets one that nobody asked for
 * (dispatcher/breaker.h). Any sender's: replicas have breakers of their own. */
struct broken_downstream {
    char repo[REPO_MAX + 1];
    int64_t answered_ms; /* its last answer; 0: none in 24 hours */
    int64_t put_off_ms;  /* the newest task that was */
};
/* At most max, to ret; how many there are. */
size_t dispatch_day_broken(const struct dispatch_day *d, int64_t now_ms,
                           struct broken_downstream *ret, size_t max);

#endif

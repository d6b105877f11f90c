/* The canary: a repository whose nightly runs try the relay from end to end (CANARY_REPO). Some of
 * its jobs should fail. PURE. */
#ifndef CRCR_REPORTER_WEB_CANARY_H
#define CRCR_REPORTER_WEB_CANARY_H

#include "../../common/base/buf.h"
#include "../../common/view/jobs.h"

#define CANARY_JOBS 100 /* of it, the newest, are looked at */

struct canary {
    bool known;        /* it is listed, or has reported */
    int64_t result_ms; /* its newest end of a job, by the relay's clock; 0: none */
    /* Of its newest run: */
    int64_t jobs, running, unexpected; /* unexpected: ended otherwise than they should */
    int64_t began_ms;
    char delivery[DELIVERY_MAX + 1];
};

/* jobs: the newest first, marked (aggregate.h). */
void canary_from_jobs(struct canary *ret, const struct result_record *jobs, size_t n, bool listed);
/* The member "canary" of /api/crcr/health; null: it is not known. */
void canary_put(struct buf *to, const struct canary *canary);

#endif

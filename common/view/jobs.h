/* Jobs in the view: what the fold writes and the pages, the reconciler and ingest read. */
#ifndef CRCR_VIEW_JOBS_H
#define CRCR_VIEW_JOBS_H

#include "../io/redis.h"
#include "../model/callback.h"

/* For ingest's best-effort answer (duplicate, 409): the state of one job. */
enum err job_state_get(struct redis *r, struct str job_key, bool *found, enum job_state *state,
                       char conclusion[32], struct why *why) MUST_CHECK;

#endif

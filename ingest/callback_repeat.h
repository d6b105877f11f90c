/* A callback for an attempt of which one came before. PURE. */
#ifndef CRCR_INGEST_CALLBACK_REPEAT_H
#define CRCR_INGEST_CALLBACK_REPEAT_H

#include "../common/model/callback.h"
#include "answer.h"

/* Step 8: compares with the state and conclusion that the view knows of this attempt (JOB_NONE:
 * nothing). True: publish, and answer *status: the state that is reported, or "duplicate" where the
 * view has come as far. False: 409, a second completed with another conclusion. */
bool callback_repeat_check(const struct callback *fields, enum job_state known,
                           const char *known_conclusion, const char **status,
                           struct answer *a) MUST_CHECK;

#endif

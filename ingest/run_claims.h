/* The run that a caller's token was made for (behaviour.md, POST /github/callback, point 5): a job
 * of GitHub Actions reports on the run and attempt that it belongs to, and on no other. Tokens of
 * other CIs are bound to no run. PURE. */
#ifndef CRCR_INGEST_RUN_CLAIMS_H
#define CRCR_INGEST_RUN_CLAIMS_H

#include "../common/model/callback.h"
#include "verdict.h"

struct run_claims {
    bool wanted;                 /* the issuer is GitHub Actions, whose tokens have both */
    char run_id[RUN_ID_MAX + 1]; /* "": the claim is absent */
    char run_attempt[RUN_ATTEMPT_MAX + 1]; /* the same */
};

/* claims: the payload of the token, verified. For another issuer *ret is empty. */
void run_claims_read(struct str issuer, struct str claims, struct run_claims *ret);
/* After the field checks. False: 403, with what differs and what is accepted. A claim that is
 * absent equals nothing. */
bool run_claims_check(const struct run_claims *claims, const struct callback *fields,
                      struct verdict *v) MUST_CHECK;

#endif

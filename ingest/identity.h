/* Who is calling: from the claims of a verified OIDC token to a downstream repository
 * (behaviour.md, POST /github/callback, step 3). PURE. */
#ifndef CRCR_INGEST_IDENTITY_H
#define CRCR_INGEST_IDENTITY_H

#include "../common/base/str.h"
#include "../common/model/limits.h"
#include "../common/model/providers.h"
#include "verdict.h"

#define ISSUER_BUILDKITE "https://agent.buildkite.com"

/* claims: the payload of the token, verified. providers may be NULL: nobody is registered. True:
 * repo says who it is. */
bool identity_check(struct str issuer, struct str claims, const struct providers *providers,
                    char repo[REPO_MAX + 1], struct verdict *v) MUST_CHECK;

#endif

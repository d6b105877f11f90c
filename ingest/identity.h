/* Who is calling: from the claims of a verified OIDC token to a downstream repository, and to the
 * run that the token was made for. PURE. */
#ifndef CRCR_INGEST_IDENTITY_H
#define CRCR_INGEST_IDENTITY_H

#include "../common/base/str.h"
#include "../common/model/allowlist.h"
#include "../common/model/callback.h"
#include "../common/model/limits.h"
#include "../common/model/providers.h"
#include "verdict.h"

struct json_t; /* jansson's */

/* claims: the object of the token, verified. Of an issuer that the providers file maps (Buildkite
 * always counts as one) the registered pipeline says who it is, of another the claim `repository`.
 * providers may be NULL: there is no file. True: repo is set. */
bool identity_check(struct str issuer, const struct json_t *claims,
                    const struct providers *providers, char repo[REPO_MAX + 1],
                    struct verdict *v) MUST_CHECK;

/* Whether it is the repository that the allowlist means, and not another that got its name: the ids
 * of the entry, if there are any, must equal the claims repository_id and repository_owner_id of a
 * token of GitHub Actions (https://docs.github.com/en/actions/reference/security/oidc). Tokens of
 * other CIs have none. False: 403. */
bool identity_ids_check(struct str issuer, const struct json_t *claims,
                        const struct allowlist_entry *entry, struct verdict *v) MUST_CHECK;

/* A job of GitHub Actions reports on the run and attempt that it belongs to, and on no other.
 * Tokens of other CIs are bound to no run. */
struct run_claims {
    bool wanted;                 /* the issuer is GitHub Actions, whose tokens have both */
    char run_id[RUN_ID_MAX + 1]; /* "": the claim is absent */
    char run_attempt[RUN_ATTEMPT_MAX + 1]; /* the same */
};

/* claims: the object of the token, verified. For another issuer *ret is empty. */
void run_claims_read(struct str issuer, const struct json_t *claims, struct run_claims *ret);
/* After the field checks. False: 403, with what differs and what is accepted. A claim that is
 * absent equals nothing. */
bool run_claims_check(const struct run_claims *claims, const struct callback *fields,
                      struct verdict *v) MUST_CHECK;

#endif

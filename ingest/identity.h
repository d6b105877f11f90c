/* Who is calling: from the claims of a verified OIDC token to a downstream repository, and to the
 * run that the token was issued for. PURE. */
#ifndef CRCR_INGEST_IDENTITY_H
#define CRCR_INGEST_IDENTITY_H

#include "../common/base/str.h"
#include "../common/model/allowlist.h"
#include "../common/model/callback.h"
#include "../common/model/limits.h"
#include "../common/model/providers.h"
#include "answer.h"

struct json_t; /* jansson's */

/* claims: of a verified token. Where the providers file maps the issuer (Buildkite always counts as
 * mapped), the registered pipeline gives the repository; otherwise the claim `repository` does.
 * providers NULL: there is no file. True: repo is set. */
bool identity_check(struct str issuer, const struct json_t *claims,
                    const struct providers *providers, char repo[REPO_MAX + 1],
                    struct answer *a) MUST_CHECK;

/* Whether this is the repository that the allowlist means, and not another that took its name: the
 * ids of the entry, if it has any, must equal the claims repository_id and repository_owner_id of a
 * token of GitHub Actions (https://docs.github.com/en/actions/reference/security/oidc). Tokens of
 * other CIs have no ids. False: 403. */
bool identity_ids_check(struct str issuer, const struct json_t *claims,
                        const struct allowlist_entry *entry, struct answer *a) MUST_CHECK;

/* A job of GitHub Actions may report only on its own run and attempt. Others' tokens name no run.
 */
struct run_claims {
    bool wanted;                 /* the issuer is GitHub Actions, whose tokens have both */
    char run_id[RUN_ID_MAX + 1]; /* "": the claim is absent */
    char run_attempt[RUN_ATTEMPT_MAX + 1]; /* the same */
};

/* claims: of a verified token. For another issuer *ret is empty. */
void run_claims_read(struct str issuer, const struct json_t *claims, struct run_claims *ret);
/* After the field checks. False: 403, with the claim that differs and what is accepted. An absent
 * claim equals nothing. */
bool run_claims_check(const struct run_claims *claims, const struct callback *fields,
                      struct answer *a) MUST_CHECK;

#endif

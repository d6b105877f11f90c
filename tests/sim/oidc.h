/* The OIDC issuer of GitHub Actions: its keys and the tokens that jobs show to the relay.
 * https://docs.github.com/en/actions/reference/security/oidc */
#ifndef CRCR_SIM_OIDC_H
#define CRCR_SIM_OIDC_H

#include "call.h"

struct oidc;

/* pem: an RSA private key. issuer is kept. */
enum err oidc_new(struct oidc **ret, struct str pem, const char *issuer,
                  struct why *why) MUST_CHECK;
void oidc_free(struct oidc *o);

/* The job that a token speaks for. */
struct oidc_job {
    struct str repo;
    int64_t run_id;
    int64_t run_attempt;
    const char *workflow;
};
/* Signs a token for 10 minutes; claims (may be NULL) are put over the usual ones, null takes one
 * out. *ret is the caller's. */
enum err oidc_token(const struct oidc *o, const struct oidc_job *job, const json_t *claims,
                    int64_t now_ms, char **ret, struct why *why) MUST_CHECK;

handler_fn oidc_jwks_get, oidc_configuration_get;
/* POST /_sim/oidc {"repo", "claims"}: {"token"}, for tests that call back themselves. */
handler_fn oidc_token_create;

#endif

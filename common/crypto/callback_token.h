/* The callback_token: what a downstream job shows to prove that the relay dispatched this delivery
 * to this repository. A compact JWS, HS256, kid in its header. It is printed in public job logs, so
 * it is no secret: it proves a dispatch to one repo, no more. */
#ifndef CRCR_CRYPTO_CALLBACK_TOKEN_H
#define CRCR_CRYPTO_CALLBACK_TOKEN_H

#include "../base/err.h"
#include "../base/str.h"

struct callback_token {
    char delivery[65];
    char repo[141];
    int64_t pr; /* 0: none (push) */
    char head_sha[65];
    int64_t dispatched_ms; /* when the dispatch was sent */
    int64_t issued_s, expires_s;
};

/* CRCR_CALLBACK_TOKEN_KEY: "kid:secret,kid:secret"; the first signs, all verify. A kid is 1 to 64
 * letters, digits, dots, dashes or underscores; a secret has at least 32 bytes (RFC 7518 section
 * 3.2) and no comma. ERR_REFUSE names the fault, never the secret. */
struct callback_keys;
enum err callback_keys_new(struct callback_keys **ret, struct str spec, struct why *why) MUST_CHECK;
void callback_keys_free(struct callback_keys *keys);

/* expires_s is issued_s + 35 d when 0. *ret is the caller's. */
enum err callback_token_sign(const struct callback_keys *keys, const struct callback_token *token,
                             char **ret, struct why *why) MUST_CHECK;
/* ERR_REFUSE: unknown kid, bad signature, expired, malformed. Matching it against body and caller
 * is the caller's business. */
enum err callback_token_verify(const struct callback_keys *keys, struct str text, int64_t now_s,
                               struct callback_token *ret, struct why *why) MUST_CHECK;

#endif

/* Shared by jwt.c, jwt_key.c and jwks.c only. */
#ifndef CRCR_CRYPTO_JWT_PRIVATE_H
#define CRCR_CRYPTO_JWT_PRIVATE_H

#include "jwt.h"

/* RFC 7518 section 3.3: RS256 keys of fewer bits are not to be used. */
#define JWT_RSA_MIN_BITS 2048

struct _cjose_jwk_int; /* cjose_jwk_t */

/* Borrowed from the key; never changed, so that threads may share it. */
const struct _cjose_jwk_int *jwt_key_jwk(const struct jwt_key *key);

/* The i-th key that a token with this kid may have been signed with, NULL past the last one. A
 * token without a kid fits a set of exactly one key. */
const struct _cjose_jwk_int *jwks_candidate(const struct jwks *set, struct str kid, size_t i);

/* True for what RFC 7515 section 2 calls BASE64URL: its alphabet, no padding, a length that bytes
 * can have. cjose 0.6.2 aborts the process on some texts that are not; none may reach it. */
bool jwt_is_base64url(struct str s);

#endif

/* JSON Web Tokens (RFC 7519) in the compact serialisation of JWS (RFC 7515), through cjose. The
 * algorithm is fixed by the function, never taken from the token: `alg: none` and key confusion
 * (RFC 8725 section 3.1) are refused. */
#ifndef CRCR_CRYPTO_JWT_H
#define CRCR_CRYPTO_JWT_H

#include "../base/err.h"
#include "../base/str.h"

/* An RSA private key for RS256. */
struct jwt_key;

/* pem: PKCS#1 or PKCS#8, real newlines or "\n" written as two characters (as secrets often arrive).
 */
enum err jwt_key_new(struct jwt_key **ret, struct str pem, struct why *why) MUST_CHECK;
void jwt_key_free(struct jwt_key *key);
/* Signs the claims (a JSON object as text) with RS256; kid may be absent. *ret is the caller's. */
enum err jwt_sign_rs256(const struct jwt_key *key, struct str kid, struct str claims, char **ret,
                        struct why *why) MUST_CHECK;
/* The public half as a JWK Set document (RFC 7517) with that kid; the simulator serves it. */
enum err jwt_key_jwks(const struct jwt_key *key, struct str kid, char **ret,
                      struct why *why) MUST_CHECK;

/* A parsed JWK Set. Keys that are not RSA signature keys are passed over. */
struct jwks;
enum err jwks_parse(struct jwks **ret, struct str json, struct why *why) MUST_CHECK;
void jwks_free(struct jwks *set);
bool jwks_has(const struct jwks *set, struct str kid);

/* A token taken apart: once, for all who look at it. ERR_REFUSE: it is no compact JWS, its claims
 * are no JSON object, or its alg, kid or iss is longer than any that we know. */
struct jwt;
struct json_t; /* jansson's */
enum err jwt_read(struct jwt **ret, struct str token, struct why *why) MUST_CHECK;
void jwt_free(struct jwt *token);     /* NULL is fine */
void jwt_cleanup(struct jwt **token); /* for CLEANUP */
/* *Unverified*: a member of the header, to choose a key by; absent when it is none or no string.
 * Borrowed from the token, as the claims. */
struct str jwt_header(const struct jwt *token, const char *name);
/* A claim that is a string, and all of them, an object. *Unverified* until jwt_verify_rs256 or
 * jwt_verify_hs256 said OK. */
struct str jwt_claim(const struct jwt *token, const char *name);
const struct json_t *jwt_claims(const struct jwt *token);

/* Verifies an RS256 token against the set: signature, then nbf, exp and iat with the leeway, then
 * aud (string or array; audience NULL asks for none). A token without exp, or with a crit header,
 * is refused. ERR_REFUSE with the reason otherwise. now_s is seconds since 1970. */
enum err jwt_verify_rs256(const struct jwt *token, const struct jwks *set, const char *audience,
                          int64_t now_s, int leeway_s, struct why *why) MUST_CHECK;

/* HS256 with shared secrets chosen by kid, for our own callback_token. ERR_REFUSE: the claims are
 * larger than any token that is read (16 KiB). */
enum err jwt_sign_hs256(struct str secret, struct str kid, struct str claims, char **ret,
                        struct why *why) MUST_CHECK;
enum err jwt_verify_hs256(const struct jwt *token, struct str secret, int64_t now_s, int leeway_s,
                          struct why *why) MUST_CHECK;

#endif

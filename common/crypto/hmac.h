/* Webhook signatures:
 * https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries */
#ifndef CRCR_CRYPTO_HMAC_H
#define CRCR_CRYPTO_HMAC_H

#include "../base/err.h"
#include "../base/str.h"

#define SHA256_BYTES    32
#define SHA256_HEX_SIZE 65

/* HMAC-SHA256 (RFC 2104) of data under key. */
void hmac_sha256(struct str key, struct str data, unsigned char digest[SHA256_BYTES]);
/* The same as 64 lower-case hex digits and a NUL. */
void hmac_sha256_hex(struct str key, struct str data, char hex[SHA256_HEX_SIZE]);
/* SHA-256 (FIPS 180-4) of data, as hex. */
void sha256_hex(struct str data, char hex[SHA256_HEX_SIZE]);
/* True when hex (64 digits, any case) is the HMAC of data; compared in constant time. */
bool hmac_sha256_matches(struct str key, struct str data, struct str hex);
/* Random bytes as n_bytes*2 hex digits and a NUL, e.g. for owner ids. */
void random_hex(char *to, size_t n_bytes);

#endif

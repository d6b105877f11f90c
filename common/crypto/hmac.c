#include "hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* SHA-256 cannot fail on bytes in memory; when it does, this process is broken. */
static void require(bool done, const char *what)
{
    if (done)
        return;
    fprintf(stderr, "OpenSSL cannot do %s\n", what);
    abort();
}

static void put_hex(const unsigned char *bytes, size_t n, char *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * n] = '\0';
}

/* Looked up once: to look it up costs as much as to hash 4 KB. */
static EVP_MAC_CTX *hmac_of_sha256;

static void hmac_look_up(void)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                  OSSL_PARAM_construct_end() };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    hmac_of_sha256 = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);
    require(hmac_of_sha256 && EVP_MAC_CTX_set_params(hmac_of_sha256, params), "HMAC-SHA256");
}

void hmac_sha256(struct str key, struct str data, unsigned char digest[SHA256_BYTES])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hmac_look_up);
    /* A NULL key would mean "the one before". */
    const char *key_bytes = key.ptr ? key.ptr : "";
    size_t n = 0;
    EVP_MAC_CTX *mac = EVP_MAC_CTX_dup(hmac_of_sha256);
    bool done = mac && EVP_MAC_init(mac, (const unsigned char *)key_bytes, key.len, NULL) &&
                EVP_MAC_update(mac, (const unsigned char *)data.ptr, data.len) &&
                EVP_MAC_final(mac, digest, &n, SHA256_BYTES);
    EVP_MAC_CTX_free(mac);
    require(done && n == SHA256_BYTES, "HMAC-SHA256");
}

void hmac_sha256_hex(struct str key, struct str data, char hex[SHA256_HEX_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    hmac_sha256(key, data, digest);
    put_hex(digest, sizeof(digest), hex);
}

void sha256_hex(struct str data, char hex[SHA256_HEX_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    unsigned int n = 0;
    bool done = EVP_Digest(data.ptr, data.len, digest, &n, EVP_sha256(), NULL) == 1;
    require(done && n == SHA256_BYTES, "SHA-256");
    put_hex(digest, sizeof(digest), hex);
}

bool hmac_sha256_matches(struct str key, struct str data, struct str hex)
{
    char claimed[SHA256_HEX_SIZE], actual[SHA256_HEX_SIZE];
    if (hex.len != SHA256_HEX_SIZE - 1 || !str_lower(claimed, sizeof(claimed), hex))
        return false;
    hmac_sha256_hex(key, data, actual);
    return CRYPTO_memcmp(claimed, actual, SHA256_HEX_SIZE - 1) == 0;
}

void random_hex(char *to, size_t n_bytes)
{
    unsigned char some[64];
    for (size_t done = 0; done < n_bytes; done += sizeof(some)) {
        size_t n = n_bytes - done < sizeof(some) ? n_bytes - done : sizeof(some);
        require(RAND_bytes(some, (int)n) == 1, "random bytes");
        put_hex(some, n, to + 2 * done);
    }
    if (n_bytes == 0)
        to[0] = '\0';
}

#include <cjose/cjose.h>
#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "jwt_private.h"

struct jwt_key {
    cjose_jwk_t *jwk;
};

/* Secrets often arrive with their newlines written as a backslash and an n. The copy is wiped by
 * the caller. */
static char *pem_with_newlines(struct str pem, size_t *len)
{
    char *copy = mem_alloc(pem.len + 1, 1);
    *len = 0;
    for (size_t i = 0; i < pem.len; i++) {
        if (pem.ptr[i] == '\\' && i + 1 < pem.len && pem.ptr[i + 1] == 'n') {
            copy[(*len)++] = '\n';
            i++;
        } else {
            copy[(*len)++] = pem.ptr[i];
        }
    }
    return copy;
}

/* Without this OpenSSL asks for the pass phrase at the terminal. */
static int no_passphrase(char *to, int size, int writing, void *opaque)
{
    (void)to, (void)size, (void)writing, (void)opaque;
    return -1;
}

static EVP_PKEY *read_pem(struct str pem)
{
    size_t len;
    char *text = pem_with_newlines(pem, &len);
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    OPENSSL_cleanse(text, len);
    free(text);
    return pkey;
}

/* The numbers of an RSA key as cjose wants them: big-endian bytes. */
struct key_number {
    const char *name;
    uint8_t **bytes;
    size_t *len;
};

static bool copy_part(const EVP_PKEY *pkey, const struct key_number *part)
{
    BIGNUM *number = NULL;
    if (EVP_PKEY_get_bn_param(pkey, part->name, &number) != 1)
        return false;
    *part->len = (size_t)BN_num_bytes(number);
    *part->bytes = mem_alloc(*part->len, 1);
    BN_bn2bin(number, *part->bytes);
    BN_clear_free(number);
    return true;
}

static cjose_jwk_t *jwk_of(const EVP_PKEY *pkey)
{
    cjose_jwk_rsa_keyspec s = { 0 };
    const struct key_number parts[] = {
        { OSSL_PKEY_PARAM_RSA_N, &s.n, &s.nlen },
        { OSSL_PKEY_PARAM_RSA_E, &s.e, &s.elen },
        { OSSL_PKEY_PARAM_RSA_D, &s.d, &s.dlen },
        { OSSL_PKEY_PARAM_RSA_FACTOR1, &s.p, &s.plen },
        { OSSL_PKEY_PARAM_RSA_FACTOR2, &s.q, &s.qlen },
        { OSSL_PKEY_PARAM_RSA_EXPONENT1, &s.dp, &s.dplen },
        { OSSL_PKEY_PARAM_RSA_EXPONENT2, &s.dq, &s.dqlen },
        { OSSL_PKEY_PARAM_RSA_COEFFICIENT1, &s.qi, &s.qilen },
    };
    enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };
    bool complete = true;
    for (size_t i = 0; i < N_PARTS && complete; i++)
        complete = copy_part(pkey, &parts[i]);
    cjose_err err;
    cjose_jwk_t *jwk = complete ? cjose_jwk_create_RSA_spec(&s, &err) : NULL;
    for (size_t i = 0; i < N_PARTS; i++) {
        if (*parts[i].bytes)
            OPENSSL_cleanse(*parts[i].bytes, *parts[i].len);
        free(*parts[i].bytes);
    }
    return jwk;
}

enum err jwt_key_new(struct jwt_key **ret, struct str pem, struct why *why)
{
    if (pem.len > 64 * 1024)
        return why_set(why, ERR_REFUSE, "the private key is larger than 64 KiB");
    EVP_PKEY *pkey = read_pem(pem);
    if (!pkey)
        return why_set(why, ERR_REFUSE,
                       "the private key is not unencrypted PEM (PKCS#1 or PKCS#8)");
    cjose_jwk_t *jwk = NULL;
    enum err err = OK;
    if (!EVP_PKEY_is_a(pkey, "RSA"))
        err = why_set(why, ERR_REFUSE, "the private key is not an RSA key");
    else if (EVP_PKEY_get_bits(pkey) < JWT_RSA_MIN_BITS)
        err = why_set(why, ERR_REFUSE, "the private key has %d bits; RS256 needs %d",
                      EVP_PKEY_get_bits(pkey), JWT_RSA_MIN_BITS);
    else if (!(jwk = jwk_of(pkey)))
        err = why_set(why, ERR_REFUSE, "the private key lacks some of its RSA numbers");
    EVP_PKEY_free(pkey);
    if (err)
        return err;
    *ret = mem_alloc(1, sizeof(**ret));
    (*ret)->jwk = jwk;
    return OK;
}

void jwt_key_free(struct jwt_key *key)
{
    if (!key)
        return;
    cjose_jwk_release(key->jwk);
    free(key);
}

const cjose_jwk_t *jwt_key_jwk(const struct jwt_key *key)
{
    return key->jwk;
}

enum err jwt_key_jwks(const struct jwt_key *key, struct str kid, char **ret, struct why *why)
{
    cjose_err cerr;
    char *public_half = cjose_jwk_to_json(key->jwk, false, &cerr);
    json_t *jwk = public_half ? json_loads(public_half, 0, NULL) : NULL;
    if (public_half)
        cjose_get_dealloc()(public_half);
    json_t *set = json_pack("{s:[o]}", "keys", jwk);
    char *text = NULL;
    if (set && json_object_set_new(jwk, "kid", json_stringn(kid.ptr, kid.len)) == 0 &&
        json_object_set_new(jwk, "alg", json_string("RS256")) == 0 &&
        json_object_set_new(jwk, "use", json_string("sig")) == 0)
        text = json_dumps(set, JSON_COMPACT);
    json_decref(set);
    if (!text)
        return why_set(why, ERR_REFUSE, "the key or its kid cannot be written as a JWK Set");
    *ret = text;
    return OK;
}

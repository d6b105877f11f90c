#include <cjose/cjose.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../base/json_text.h"
#include "../base/mem.h"
#include "hmac.h"
#include "jwt_private.h"

enum {
    TOKEN_MAX_BYTES = 16 * 1024, /* GitHub's are about 2 KB */
    ALG_MAX_BYTES = 15,
    NAME_MAX_BYTES = 255, /* of kid and iss */
};

static void jws_clear(cjose_jws_t **jws)
{
    cjose_jws_release(*jws);
}

/* ---- signing ---- */

static cjose_header_t *header_new(const char *alg, struct str kid)
{
    char *CLEANUP(mem_free_char) kid_text = str_dup(kid);
    cjose_err err;
    cjose_header_t *header = cjose_header_new(&err);
    if (header && cjose_header_set(header, CJOSE_HDR_ALG, alg, &err) &&
        cjose_header_set(header, "typ", "JWT", &err) &&
        (!kid_text || cjose_header_set(header, CJOSE_HDR_KID, kid_text, &err)))
        return header;
    cjose_header_release(header);
    return NULL;
}

static enum err sign(const cjose_jwk_t *jwk, const char *alg, struct str kid, struct str claims,
                     char **ret, struct why *why)
{
    cjose_header_t *header = header_new(alg, kid);
    if (!header)
        return why_set(why, ERR_REFUSE, "the kid cannot be written into a token: UTF-8 is needed");
    cjose_err cerr = { .message = "no key" };
    cjose_jws_t *CLEANUP(jws_clear) jws =
        jwk ? cjose_jws_sign(jwk, header, (const uint8_t *)claims.ptr, claims.len, &cerr) : NULL;
    cjose_header_release(header);
    const char *text;
    if (!jws || !cjose_jws_export(jws, &text, &cerr))
        return why_set(why, ERR_REFUSE, "cannot sign a token: %s", cerr.message);
    *ret = mem_dup(text);
    return OK;
}

enum err jwt_sign_rs256(const struct jwt_key *key, struct str kid, struct str claims, char **ret,
                        struct why *why)
{
    return sign(jwt_key_jwk(key), "RS256", kid, claims, ret, why);
}

static void put_base64url(struct buf *to, struct str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    char text[256];
    size_t n = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        unsigned bits = (unsigned)p[i] << 16 | (i + 1 < bytes.len ? p[i + 1] : 0u) << 8 |
                        (i + 2 < bytes.len ? p[i + 2] : 0u);
        text[n] = digits[bits >> 18];
        text[n + 1] = digits[bits >> 12 & 63];
        text[n + 2] = digits[bits >> 6 & 63];
        text[n + 3] = digits[bits & 63];
        n += bytes.len - i < 3 ? bytes.len - i + 1 : 4;
        if (n == sizeof(text)) {
            buf_put(to, (struct str){ text, n });
            n = 0;
        }
    }
    buf_put(to, (struct str){ text, n });
}

/* Not by cjose, which builds three documents for it: each dispatch has one. */
enum err jwt_sign_hs256(struct str secret, struct str kid, struct str claims, char **ret,
                        struct why *why)
{
    struct buf CLEANUP(buf_clear) header = BUF_INIT(TOKEN_MAX_BYTES);
    struct buf CLEANUP(buf_clear) token = BUF_INIT(TOKEN_MAX_BYTES);
    unsigned char digest[SHA256_BYTES];
    buf_puts(&header, "{\"alg\":\"HS256\",\"kid\":");
    json_text_put(&header, kid);
    buf_puts(&header, ",\"typ\":\"JWT\"}");
    put_base64url(&token, buf_str(&header));
    buf_putc(&token, '.');
    put_base64url(&token, claims);
    hmac_sha256(secret, buf_str(&token), digest);
    buf_putc(&token, '.');
    put_base64url(&token, (struct str){ (const char *)digest, sizeof(digest) });
    if (buf_full(&header) || buf_full(&token))
        return why_set(why, ERR_REFUSE, "the claims are too large for a token");
    *ret = buf_take(&token, NULL);
    return OK;
}

/* ---- reading ---- */

bool jwt_is_base64url(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return s.len % 4 != 1;
}

/* Header, payload and signature; a fourth part would bring a dot, which is not in the alphabet. */
static bool is_compact_jws(struct str token)
{
    for (size_t part = 0; part < 2; part++) {
        ptrdiff_t dot = str_find(token, '.');
        if (dot <= 0 || !jwt_is_base64url((struct str){ token.ptr, (size_t)dot }))
            return false;
        token = str_from(token, (size_t)dot + 1);
    }
    return jwt_is_base64url(token);
}

static enum err import(struct str token, cjose_jws_t **ret, struct why *why)
{
    if (token.len > TOKEN_MAX_BYTES)
        return why_set(why, ERR_REFUSE, "the token has %zu bytes; at most %d are read", token.len,
                       (int)TOKEN_MAX_BYTES);
    if (!is_compact_jws(token))
        return why_set(why, ERR_REFUSE, "the token is not a compact JWS: three parts in base64url");
    cjose_err cerr;
    cjose_jws_t *jws = cjose_jws_import(token.ptr, token.len, &cerr);
    if (!jws)
        return why_set(why, ERR_REFUSE, "the token is not a compact JWS: %s", cerr.message);
    *ret = jws;
    return OK;
}

static struct str plaintext(const cjose_jws_t *jws)
{
    uint8_t *bytes;
    size_t len;
    cjose_err err;
    if (!cjose_jws_get_plaintext(jws, &bytes, &len, &err))
        return STR_NONE;
    return (struct str){ (const char *)bytes, len };
}

static enum err parse_claims(struct str text, json_t **ret, struct why *why)
{
    json_error_t fault;
    json_t *claims =
        text.ptr ? json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &fault) : NULL;
    if (!json_is_object(claims)) {
        json_decref(claims);
        return why_set(why, ERR_REFUSE, "the token's claims are not a JSON object");
    }
    *ret = claims;
    return OK;
}

struct jwt {
    cjose_jws_t *jws;
    json_t *claims;
};

static struct str member_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return (struct str){ json_string_value(value), json_string_length(value) };
}

enum err jwt_read(struct jwt **ret, struct str token, struct why *why)
{
    struct jwt *t = mem_alloc(1, sizeof(*t));
    enum err err = import(token, &t->jws, why);
    if (!err)
        err = parse_claims(plaintext(t->jws), &t->claims, why);
    if (!err &&
        (jwt_header(t, "alg").len > ALG_MAX_BYTES || jwt_header(t, "kid").len > NAME_MAX_BYTES ||
         member_text(t->claims, "iss").len > NAME_MAX_BYTES))
        err = why_set(why, ERR_REFUSE, "the token's alg, kid or iss is too long");
    if (err)
        jwt_free(t);
    else
        *ret = t;
    return err;
}

void jwt_free(struct jwt *t)
{
    if (!t)
        return;
    cjose_jws_release(t->jws);
    json_decref(t->claims);
    free(t);
}

void jwt_cleanup(struct jwt **t)
{
    jwt_free(*t);
}

struct str jwt_header(const struct jwt *t, const char *name)
{
    return member_text(cjose_jws_get_protected(t->jws), name);
}

struct str jwt_claim(const struct jwt *t, const char *name)
{
    return member_text(t->claims, name);
}

const struct json_t *jwt_claims(const struct jwt *t)
{
    return t->claims;
}

/* ---- verifying ---- */

/* Checked before a key is chosen. "crit" names extensions that must be understood (RFC 7515 section
 * 4.1.11), and we know none. */
static enum err check_header(const struct jwt *t, const char *alg, struct why *why)
{
    struct str found = jwt_header(t, "alg");
    if (!str_is(found, alg))
        return why_set(why, ERR_REFUSE, "the token's algorithm is %.*s; only %s is accepted",
                       found.len < 32 ? (int)found.len : 32, found.ptr ? found.ptr : "", alg);
    if (json_object_get(cjose_jws_get_protected(t->jws), "crit"))
        return why_set(why, ERR_REFUSE, "the token asks for extensions (crit) that are unknown");
    return OK;
}

/* A NumericDate; may have a fraction (RFC 7519 section 2). False when it is there and no number. */
static bool get_date(const json_t *claims, const char *name, double fallback, double *ret)
{
    const json_t *claim = json_object_get(claims, name);
    *ret = claim ? json_number_value(claim) : fallback;
    return !claim || json_is_number(claim);
}

/* RFC 7519 sections 4.1.4 to 4.1.6. A token without an end is not accepted. */
static enum err check_times(const json_t *claims, int64_t now_s, int leeway_s, struct why *why)
{
    double now = (double)now_s, nbf, iat, exp;
    if (!get_date(claims, "nbf", now, &nbf) || !get_date(claims, "iat", now, &iat) ||
        !get_date(claims, "exp", 0, &exp))
        return why_set(why, ERR_REFUSE, "the token's nbf, iat or exp is not a number");
    if (!json_object_get(claims, "exp"))
        return why_set(why, ERR_REFUSE, "the token has no exp");
    if (now >= exp + leeway_s)
        return why_set(why, ERR_REFUSE, "the token expired %.0f s ago", now - exp);
    if (now + leeway_s < nbf)
        return why_set(why, ERR_REFUSE, "the token is valid only in %.0f s", nbf - now);
    if (now + leeway_s < iat)
        return why_set(why, ERR_REFUSE, "the token was issued %.0f s in the future", iat - now);
    return OK;
}

static enum err check_audience(const json_t *claims, const char *audience, struct why *why)
{
    const json_t *aud = json_object_get(claims, "aud");
    const char *single = json_string_value(aud);
    if (single && strcmp(single, audience) == 0)
        return OK;
    for (size_t i = 0; i < json_array_size(aud); i++) {
        const char *one = json_string_value(json_array_get(aud, i));
        if (one && strcmp(one, audience) == 0)
            return OK;
    }
    return why_set(why, ERR_REFUSE, "the token's audience is %.60s; only %s is accepted",
                   single               ? single
                   : json_is_array(aud) ? "a list without it"
                                        : "missing",
                   audience);
}

enum err jwt_verify_rs256(const struct jwt *t, const struct jwks *set, const char *audience,
                          int64_t now_s, int leeway_s, struct why *why)
{
    enum err err = check_header(t, "RS256", why);
    if (err)
        return err;
    struct str kid = jwt_header(t, "kid");
    if (!jwks_has(set, kid))
        return why_set(why, ERR_REFUSE, "the token's key (kid %.*s) is not in the issuer's set",
                       kid.len < 64 ? (int)kid.len : 64, kid.ptr ? kid.ptr : "absent");
    const cjose_jwk_t *jwk;
    for (size_t i = 0; (jwk = jwks_candidate(set, kid, i)); i++) {
        cjose_err cerr;
        if (!cjose_jws_verify(t->jws, jwk, &cerr))
            continue;
        err = check_times(t->claims, now_s, leeway_s, why);
        return err || !audience ? err : check_audience(t->claims, audience, why);
    }
    return why_set(why, ERR_REFUSE, "the token's signature is wrong");
}

static cjose_jwk_t *jwk_of_secret(struct str secret)
{
    cjose_err err;
    return cjose_jwk_create_oct_spec((const uint8_t *)secret.ptr, secret.len, &err);
}

enum err jwt_verify_hs256(const struct jwt *t, struct str secret, int64_t now_s, int leeway_s,
                          struct why *why)
{
    enum err err = check_header(t, "HS256", why);
    if (err)
        return err;
    cjose_jwk_t *jwk = jwk_of_secret(secret);
    cjose_err cerr;
    bool genuine = jwk && cjose_jws_verify(t->jws, jwk, &cerr);
    cjose_jwk_release(jwk);
    if (!genuine)
        return why_set(why, ERR_REFUSE, "the token's signature is wrong");
    return check_times(t->claims, now_s, leeway_s, why);
}

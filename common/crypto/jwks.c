#include <cjose/cjose.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "jwt_private.h"

enum { KEYS_MAX = 100 }; /* more than any issuer has; a bound on the work of one bad document */

struct jwks_key {
    char *kid; /* "" when the key has none */
    cjose_jwk_t *jwk;
};

struct jwks {
    size_t n;
    struct jwks_key keys[KEYS_MAX];
};

/* True when the member is absent or has that text. */
static bool is_absent_or(const json_t *object, const char *name, const char *text)
{
    const json_t *member = json_object_get(object, name);
    return !member || (json_is_string(member) && strcmp(json_string_value(member), text) == 0);
}

static bool is_rsa_signature_key(const json_t *jwk)
{
    const json_t *kty = json_object_get(jwk, "kty");
    return json_is_string(kty) && strcmp(json_string_value(kty), "RSA") == 0 &&
           is_absent_or(jwk, "use", "sig") && is_absent_or(jwk, "alg", "RS256");
}

static bool is_number(const json_t *member)
{
    struct str text = { json_string_value(member), json_string_length(member) };
    return text.len > 0 && jwt_is_base64url(text);
}

/* Only n and e are handed on: a set that carries private numbers too is none of our business. */
static cjose_jwk_t *import_public(const json_t *jwk)
{
    if (!is_number(json_object_get(jwk, "n")) || !is_number(json_object_get(jwk, "e")))
        return NULL;
    json_t *public_half = json_pack("{s:s, s:O, s:O}", "kty", "RSA", "n", json_object_get(jwk, "n"),
                                    "e", json_object_get(jwk, "e"));
    cjose_err err;
    cjose_jwk_t *made = public_half ? cjose_jwk_import_json(public_half, &err) : NULL;
    json_decref(public_half);
    if (made && cjose_jwk_get_keysize(made, &err) < JWT_RSA_MIN_BITS) {
        cjose_jwk_release(made);
        return NULL;
    }
    return made;
}

static void add_key(struct jwks *set, const json_t *jwk)
{
    if (set->n == KEYS_MAX || !is_rsa_signature_key(jwk))
        return;
    const json_t *kid = json_object_get(jwk, "kid");
    if (kid && !json_is_string(kid))
        return;
    cjose_jwk_t *key = import_public(jwk);
    if (!key)
        return;
    set->keys[set->n++] = (struct jwks_key){ mem_dup(kid ? json_string_value(kid) : ""), key };
}

enum err jwks_parse(struct jwks **ret, struct str json, struct why *why)
{
    json_error_t fault;
    json_auto_t *document =
        json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &fault);
    if (!document)
        return why_set(why, ERR_REFUSE, "the JWK Set is not JSON: %s at byte %d", fault.text,
                       fault.position);
    const json_t *keys = json_object_get(document, "keys");
    if (!json_is_array(keys))
        return why_set(why, ERR_REFUSE, "the JWK Set has no array \"keys\"");
    struct jwks *set = mem_alloc(1, sizeof(*set));
    size_t i;
    json_t *jwk;
    json_array_foreach(keys, i, jwk) add_key(set, jwk);
    if (set->n == 0) {
        jwks_free(set);
        return why_set(why, ERR_REFUSE, "the JWK Set has no RSA signature key of %d bits or more",
                       JWT_RSA_MIN_BITS);
    }
    *ret = set;
    return OK;
}

void jwks_free(struct jwks *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->n; i++) {
        free(set->keys[i].kid);
        cjose_jwk_release(set->keys[i].jwk);
    }
    free(set);
}

const cjose_jwk_t *jwks_candidate(const struct jwks *set, struct str kid, size_t i)
{
    if (kid.len == 0)
        return set->n == 1 && i == 0 ? set->keys[0].jwk : NULL;
    for (size_t k = 0; k < set->n; k++)
        if (str_is(kid, set->keys[k].kid) && i-- == 0)
            return set->keys[k].jwk;
    return NULL;
}

bool jwks_has(const struct jwks *set, struct str kid)
{
    return jwks_candidate(set, kid, 0);
}

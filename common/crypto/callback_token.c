#include "callback_token.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../base/json_put.h"
#include "../base/mem.h"
#include "jwt.h"

enum {
    KEYS_MAX = 16,
    KID_MAX = 64,
    SECRET_MIN_BYTES = 32, /* RFC 7518 section 3.2: as long as the hash */
    CLAIMS_MAX_BYTES = 4096,
    LEEWAY_S = 60, /* replicas' clocks differ */
};
static const int64_t LIFE_S = 35 * 86400; /* GitHub allows re-runs, which reuse it, for 30 days */

struct callback_key {
    char *kid;
    char *secret;
};

struct callback_keys {
    size_t n;
    struct callback_key keys[KEYS_MAX];
};

static const struct callback_key *key_find(const struct callback_keys *keys, struct str kid)
{
    for (size_t i = 0; i < keys->n; i++)
        if (str_is(kid, keys->keys[i].kid))
            return &keys->keys[i];
    return NULL;
}

static bool is_kid(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return s.len > 0 && s.len <= KID_MAX;
}

/* part is "kid:secret". The secret is never quoted in *why. */
static enum err add_key(struct callback_keys *keys, struct str part, struct why *why)
{
    size_t number = keys->n + 1;
    ptrdiff_t colon = str_find(part, ':');
    if (colon < 0)
        return why_set(why, ERR_REFUSE, "key %zu is not kid:secret", number);
    struct str kid = { part.ptr, (size_t)colon }, secret = str_from(part, (size_t)colon + 1);
    if (!is_kid(kid))
        return why_set(why, ERR_REFUSE,
                       "the kid of key %zu is not 1 to %d letters, digits, dots, dashes or "
                       "underscores",
                       number, (int)KID_MAX);
    if (secret.len < SECRET_MIN_BYTES)
        return why_set(why, ERR_REFUSE,
                       "the secret of key %.*s has %zu bytes; at least %d are needed "
                       "(openssl rand -hex 32)",
                       STR_ARG(kid), secret.len, (int)SECRET_MIN_BYTES);
    if (key_find(keys, kid))
        return why_set(why, ERR_REFUSE, "the kid %.*s is there twice", STR_ARG(kid));
    if (keys->n == KEYS_MAX)
        return why_set(why, ERR_REFUSE, "more than %d keys", (int)KEYS_MAX);
    keys->keys[keys->n++] = (struct callback_key){ str_dup(kid), str_dup(secret) };
    return OK;
}

enum err callback_keys_new(struct callback_keys **ret, struct str spec, struct why *why)
{
    struct callback_keys *keys = mem_alloc(1, sizeof(*keys));
    enum err err = OK;
    struct str part;
    while (!err && str_split(&spec, ',', &part))
        err = add_key(keys, str_trim(part), why);
    if (!err && keys->n == 0)
        err = why_set(why, ERR_REFUSE, "no key: kid:secret is expected");
    if (err) {
        callback_keys_free(keys);
        return err;
    }
    *ret = keys;
    return OK;
}

void callback_keys_free(struct callback_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->n; i++) {
        free(keys->keys[i].kid);
        explicit_bzero(keys->keys[i].secret, strlen(keys->keys[i].secret));
        free(keys->keys[i].secret);
    }
    free(keys);
}

enum err callback_token_sign(const struct callback_keys *keys, const struct callback_token *token,
                             char **ret, struct why *why)
{
    int64_t expires_s = token->expires_s ? token->expires_s : token->issued_s + LIFE_S;
    struct buf CLEANUP(buf_clear) claims = BUF_INIT(CLAIMS_MAX_BYTES);
    json_put_begin(&claims, NULL, '{');
    json_put_text(&claims, "delivery_id", str_of(token->delivery));
    json_put_text(&claims, "repo", str_of(token->repo));
    json_put_number(&claims, "pr_number", token->pr);
    json_put_text(&claims, "head_sha", str_of(token->head_sha));
    json_put_number(&claims, "dispatched_at", token->dispatched_ms);
    json_put_number(&claims, "iat", token->issued_s);
    json_put_number(&claims, "exp", expires_s);
    buf_putc(&claims, '}');
    if (buf_full(&claims))
        return why_set(why, ERR_REFUSE, "the callback_token's fields are too long");
    const struct callback_key *first = &keys->keys[0];
    return jwt_sign_hs256(str_of(first->secret), str_of(first->kid), buf_str(&claims), ret, why);
}

static bool get_text(const json_t *claims, const char *name, char *to, size_t size)
{
    const json_t *claim = json_object_get(claims, name);
    return json_is_string(claim) && str_copy(to, size, str_of(json_string_value(claim)));
}

static bool get_number(const json_t *claims, const char *name, int64_t *ret)
{
    const json_t *claim = json_object_get(claims, name);
    *ret = json_integer_value(claim);
    return json_is_integer(claim) && *ret >= 0;
}

static bool read_claims(const json_t *claims, struct callback_token *t)
{
    return get_text(claims, "delivery_id", t->delivery, sizeof(t->delivery)) && t->delivery[0] &&
           get_text(claims, "repo", t->repo, sizeof(t->repo)) && t->repo[0] &&
           get_text(claims, "head_sha", t->head_sha, sizeof(t->head_sha)) &&
           get_number(claims, "pr_number", &t->pr) &&
           get_number(claims, "dispatched_at", &t->dispatched_ms) &&
           get_number(claims, "iat", &t->issued_s) && get_number(claims, "exp", &t->expires_s);
}

enum err callback_token_verify(const struct callback_keys *keys, struct str text, int64_t now_s,
                               struct callback_token *ret, struct why *why)
{
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct callback_token token;
    enum err err = jwt_read(&jwt, text, why);
    if (err)
        return why_prefix(why, err, "callback_token");
    const struct callback_key *key = key_find(keys, jwt_header(jwt, "kid"));
    if (!key)
        return why_set(why, ERR_REFUSE, "callback_token: the kid is unknown");
    err = jwt_verify_hs256(jwt, str_of(key->secret), now_s, LEEWAY_S, why);
    if (err)
        return why_prefix(why, err, "callback_token");
    if (!read_claims(jwt_claims(jwt), &token))
        return why_set(why, ERR_REFUSE, "callback_token: a claim is missing or of the wrong type");
    *ret = token;
    return OK;
}

#include "oidc.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "../../common/crypto/jwt.h"
#include "shape.h"
#include "sim.h"

#define TOKEN_LIFE_S 600
#define AUDIENCE     "pytorch-cross-repo-ci-relay"

struct oidc {
    struct jwt_key *key;
    char kid[17];
    char *issuer;
    char *jwks; /* the document */
};

enum err oidc_new(struct oidc **ret, struct str pem, const char *issuer, struct why *why)
{
    struct oidc *o = mem_alloc(1, sizeof(*o));
    char digest[SHA256_HEX_SIZE];
    enum err err;

    /* The same key has the same kid after a restart, so that caches stay good. */
    sha256_hex(pem, digest);
    str_copy(o->kid, sizeof(o->kid), (struct str){ digest, 16 });
    o->issuer = mem_dup(issuer);
    err = jwt_key_new(&o->key, pem, why);
    if (!err)
        err = jwt_key_jwks(o->key, str_of(o->kid), &o->jwks, why);
    if (err) {
        oidc_free(o);
        return why_prefix(why, err, "the issuer's key");
    }
    *ret = o;
    return OK;
}

void oidc_free(struct oidc *o)
{
    if (!o)
        return;
    jwt_key_free(o->key);
    free(o->issuer);
    free(o->jwks);
    free(o);
}

static json_t *claims_of(const struct oidc *o, const struct oidc_job *job, int64_t now_s)
{
    ptrdiff_t slash = str_find(job->repo, '/');
    struct str owner = { job->repo.ptr, slash < 0 ? job->repo.len : (size_t)slash };
    char jti[33];

    random_hex(jti, 16);
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:s%, s:s%, s:o, s:o, s:o, s:s, s:o, s:s, s:s, s:s}",
        "iss", o->issuer, "aud", AUDIENCE, "jti", jti, "iat", (json_int_t)now_s, "nbf",
        (json_int_t)now_s, "exp", (json_int_t)(now_s + TOKEN_LIFE_S), "sub",
        json_sprintf("repo:%.*s:ref:refs/heads/main", STR_ARG(job->repo)), "repository",
        job->repo.ptr, job->repo.len, "repository_owner", owner.ptr, owner.len, "repository_id",
        json_sprintf("%lld", (long long)shape_id(job->repo)), "run_id",
        json_sprintf("%lld", (long long)job->run_id), "run_attempt",
        json_sprintf("%lld", (long long)job->run_attempt), "workflow", job->workflow,
        "job_workflow_ref",
        json_sprintf("%.*s/.github/workflows/crcr.yml@refs/heads/main", STR_ARG(job->repo)), "ref",
        "refs/heads/main", "sha", "4444444444444444444444444444444444444444", "event_name",
        "repository_dispatch");
}

static void claims_change(json_t *claims, const json_t *changes)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)changes, name, value)
    {
        if (json_is_null(value))
            json_object_del(claims, name);
        else
            json_object_set(claims, name, value);
    }
}

enum err oidc_token(const struct oidc *o, const struct oidc_job *job, const json_t *changes,
                    int64_t now_ms, char **ret, struct why *why)
{
    json_t *claims = claims_of(o, job, now_ms / 1000);
    char *CLEANUP(mem_free_char) text = NULL;

    if (!claims)
        return why_set(why, ERR_REFUSE, "a claim is not UTF-8");
    claims_change(claims, changes);
    text = json_dumps(claims, JSON_COMPACT);
    json_decref(claims);
    return jwt_sign_rs256(o->key, str_of(o->kid), str_of(text), ret, why);
}

void oidc_jwks_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    (void)call;
    reply_text(reply, 200, "application/json", mem_dup(sim->oidc->jwks), strlen(sim->oidc->jwks));
}

void oidc_configuration_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    (void)call;
    reply_json(reply, 200,
               json_pack("{s:s, s:o, s:[s], s:[s], s:[s]}", "issuer", sim->oidc->issuer, "jwks_uri",
                         json_sprintf("%s/.well-known/jwks", sim->base_url),
                         "subject_types_supported", "public", "response_types_supported",
                         "id_token", "id_token_signing_alg_values_supported", "RS256"));
}

void oidc_token_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct oidc_job job = {
        .repo = call_text(call, "repo"), .run_id = 1, .run_attempt = 1, .workflow = "CI"
    };
    char *CLEANUP(mem_free_char) token = NULL;
    struct why why;

    if (!job.repo.ptr) {
        reply_error(reply, 422, "repo is missing");
        return;
    }
    if (oidc_token(sim->oidc, &job, json_object_get(call->body, "claims"), call->now_ms, &token,
                   &why)) {
        reply_error(reply, 422, "%s", why.text);
        return;
    }
    reply_json(reply, 200, json_pack("{s:s}", "token", token));
}

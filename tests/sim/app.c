#include "app.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "../../common/crypto/jwt.h"
#include "downstream.h"
#include "shape.h"
#include "sim.h"

#define HOUR_MS         3600000
#define JWT_LIFE_MAX_S  600
#define JWT_LEEWAY_S    60
#define FIRST_INSTALLED 5001
#define KEYS_MAX        4

struct installation {
    UT_hash_handle hh;
    char *owner; /* lower case */
    int64_t id;
    int64_t used;
    int64_t window_ends_ms;
    int64_t *created_ms; /* of the last content_limit creations, a ring; or NULL */
    int64_t n_created;
};

struct token {
    UT_hash_handle hh;
    char text[64];
    struct installation *installation;
    char name[128];      /* of its only repository; "": all of the installation's */
    json_t *permissions; /* "contents" → "write", … */
    int64_t expires_ms;
};

/* The App's JWTs name no key: a set of one each, tried in turn. */
struct keys {
    struct jwks *at[KEYS_MAX];
    size_t n;
};

struct app {
    char *id;
    struct keys keys;
    int64_t token_ttl_s;
    int64_t rate_limit, content_limit, content_window_ms;
    struct installation *installations; /* by owner; kept for the whole life */
    struct token *tokens;               /* by text */
};

static void token_free(struct app *app, struct token *token)
{
    HASH_DEL(app->tokens, token);
    json_decref(token->permissions);
    free(token);
}

static void keys_free(struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        jwks_free(keys->at[i]);
    keys->n = 0;
}

static enum err key_add(struct keys *keys, struct str pem, struct why *why)
{
    char *CLEANUP(mem_free_char) document = NULL;
    struct jwt_key *key = NULL;
    enum err err = jwt_key_new(&key, pem, why);

    if (!err)
        err = jwt_key_jwks(key, STR_LIT("app"), &document, why);
    if (!err)
        err = jwks_parse(&keys->at[keys->n], str_of(document), why);
    if (!err)
        keys->n++;
    jwt_key_free(key);
    return err;
}

enum err app_new(struct app **ret, const struct app_options *options, struct why *why)
{
    struct app *app = mem_alloc(1, sizeof(*app));
    enum err err = key_add(&app->keys, options->key_pem, why);

    if (err) {
        app_free(app);
        return why_prefix(why, err, "the App's key");
    }
    app->id = mem_dup(options->app_id);
    app->token_ttl_s = options->token_ttl_s;
    app->rate_limit = options->rate_limit;
    app->content_limit = options->content_limit;
    app->content_window_ms = options->content_window_ms;
    *ret = app;
    return OK;
}

void app_reset(struct app *app)
{
    struct installation *installation, *next;
    struct token *token, *following;

    HASH_ITER(hh, app->tokens, token, following)
    token_free(app, token);
    HASH_ITER(hh, app->installations, installation, next)
    {
        installation->used = 0;
        free(installation->created_ms);
        installation->created_ms = NULL;
        installation->n_created = 0;
    }
}

void app_free(struct app *app)
{
    struct installation *installation, *next;

    if (!app)
        return;
    app_reset(app);
    HASH_ITER(hh, app->installations, installation, next)
    {
        HASH_DEL(app->installations, installation);
        free(installation->owner);
        free(installation->created_ms);
        free(installation);
    }
    keys_free(&app->keys);
    free(app->id);
    free(app);
}

/* One installation an account. */
static struct installation *installation_of(struct app *app, struct str owner)
{
    struct installation *found;
    char *name = str_dup(owner);

    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    HASH_FIND_STR(app->installations, name, found);
    if (found) {
        free(name);
        return found;
    }
    found = mem_alloc(1, sizeof(*found));
    found->owner = name;
    found->id = FIRST_INSTALLED + (int64_t)HASH_COUNT(app->installations);
    HASH_ADD_KEYPTR(hh, app->installations, found->owner, strlen(found->owner), found);
    return found;
}

static struct installation *installation_find(struct app *app, int64_t id)
{
    struct installation *i;

    for (i = app->installations; i && i->id != id; i = i->hh.next)
        ;
    return i;
}

/* https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app */
static const char *claims_fault(const struct app *app, const json_t *claims, int64_t now_s)
{
    const json_t *iss = json_object_get(claims, "iss"), *exp = json_object_get(claims, "exp");
    const char *fault = NULL;
    char issuer[64] = "";

    if (json_is_string(iss))
        snprintf(issuer, sizeof(issuer), "%s", json_string_value(iss));
    else if (json_is_integer(iss))
        snprintf(issuer, sizeof(issuer), "%lld", (long long)json_integer_value(iss));
    if (!json_is_integer(exp) || !json_is_integer(json_object_get(claims, "iat")))
        fault = "'Expiration time' claim ('exp') must be a numeric value";
    else if (json_integer_value(exp) > now_s + JWT_LIFE_MAX_S)
        fault = "'Expiration time' claim ('exp') is too far in the future";
    else if (!str_is(str_of(issuer), app->id))
        fault = "'Issuer' claim ('iss') must be the App's id";
    return fault;
}

static bool authorise_app(struct app *app, struct str token, const struct call *call,
                          struct reply *reply)
{
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    const char *fault;
    struct why why;
    enum err err = jwt_read(&jwt, token, &why), verified = ERR_REFUSE;

    for (size_t i = 0; !err && verified && i < app->keys.n; i++)
        verified =
            jwt_verify_rs256(jwt, app->keys.at[i], NULL, call->now_ms / 1000, JWT_LEEWAY_S, &why);
    if (verified) {
        reply_error(reply, 401, "A JSON web token could not be decoded (%s)", why.text);
        return false;
    }
    fault = claims_fault(app, jwt_claims(jwt), call->now_ms / 1000);
    if (fault)
        reply_error(reply, 401, "%s", fault);
    return !fault;
}

/* need: "contents:read"; "write" allows to read, too. */
static bool token_allows(const struct token *token, const char *need)
{
    struct str wanted = str_of(need), name;
    char key[32];

    str_split(&wanted, ':', &name);
    str_copy(key, sizeof(key), name);
    const char *has = json_string_value(json_object_get(token->permissions, key));
    return has && (strcmp(has, "write") == 0 || str_is(wanted, has));
}

static bool authorise_installation(struct app *app, struct str text, const char *permission,
                                   struct call *call, struct reply *reply)
{
    struct token *token;

    HASH_FIND(hh, app->tokens, text.ptr, text.len, token);
    if (!token || token->expires_ms <= call->now_ms) {
        reply_error(reply, 401, "Bad credentials");
        return false;
    }
    call->installation = token->installation->id;
    if (str_eq_nocase(call->owner, str_of(token->installation->owner)) &&
        (!token->name[0] || str_eq_nocase(call->name, str_of(token->name))) &&
        token_allows(token, permission))
        return true;
    reply_error(reply, 403, "Resource not accessible by integration");
    return false;
}

bool app_authorise(struct app *app, enum auth need, const char *permission, struct call *call,
                   struct reply *reply)
{
    struct str header = headers_get(call->headers, "authorization");
    struct str kind;

    if (need == AUTH_NONE)
        return true;
    if (!str_split(&header, ' ', &kind) ||
        !(str_eq_nocase(kind, STR_LIT("bearer")) || str_eq_nocase(kind, STR_LIT("token")))) {
        reply_error(reply, 401, "Requires authentication");
        return false;
    }
    if (need == AUTH_APP)
        return authorise_app(app, str_trim(header), call, reply);
    return authorise_installation(app, str_trim(header), permission, call, reply);
}

bool app_budget(struct app *app, const struct call *call, struct reply *reply)
{
    struct installation *i = installation_find(app, call->installation);
    int64_t left;

    if (!i)
        return true;
    if (call->now_ms >= i->window_ends_ms) {
        i->used = 0;
        i->window_ends_ms = call->now_ms + HOUR_MS;
    }
    i->used++;
    left = app->rate_limit - i->used;
    reply_header(reply, "x-ratelimit-limit", "%lld", (long long)app->rate_limit);
    reply_header(reply, "x-ratelimit-remaining", "%lld", (long long)(left > 0 ? left : 0));
    reply_header(reply, "x-ratelimit-used", "%lld", (long long)i->used);
    reply_header(reply, "x-ratelimit-reset", "%lld", (long long)(i->window_ends_ms / 1000));
    reply_header(reply, "x-ratelimit-resource", "core");
    if (left >= 0)
        return true;
    reply_error(reply, 403, "API rate limit exceeded for installation ID %lld.", (long long)i->id);
    return false;
}

bool app_content(struct app *app, const struct call *call, struct reply *reply)
{
    struct installation *i = installation_find(app, call->installation);
    bool creates = str_is(call->method, "POST") &&
                   (str_ends(call->path, "/check-runs") || str_ends(call->path, "/comments"));

    if (!i || !creates || !app->content_limit)
        return true;
    if (!i->created_ms)
        i->created_ms = mem_alloc((size_t)app->content_limit, sizeof(*i->created_ms));
    /* The one that a window of the limit's size began with. */
    int64_t *oldest = &i->created_ms[i->n_created % app->content_limit];
    if (*oldest && call->now_ms - *oldest < app->content_window_ms) {
        reply_header(reply, "retry-after", "%lld",
                     (long long)(app->content_window_ms + 999) / 1000);
        reply_error(reply, 403,
                    "You have exceeded a secondary rate limit. Please wait a few "
                    "minutes before you try again.");
        return false;
    }
    *oldest = call->now_ms;
    i->n_created++;
    return true;
}

static json_t *permissions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "actions", "write", "checks", "write", "contents",
                     "write", "metadata", "read", "pull_requests", "write");
}

json_t *app_describe(const struct app *app, const char *base)
{
    json_t *created = shape_time(1577836800000);
    json_t *document = json_pack(
        "{s:I, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:O, s:O, s:o, s:[ssss]}", "id",
        (json_int_t)strtoll(app->id, NULL, 10), "slug", "crcr-sim", "node_id",
        shape_node_id("A", strtoll(app->id, NULL, 10)), "owner",
        shape_user(base, STR_LIT("pytorch")), "name", "crcr-sim", "description", "Simulated",
        "external_url", "https://github.com/pytorch/test-infra", "html_url",
        "https://github.com/apps/crcr-sim", "created_at", created, "updated_at", created,
        "permissions", permissions(), "events", "pull_request", "push", "check_run", "check_suite");

    json_decref(created);
    return document;
}

void app_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    (void)call;
    reply_json(reply, 200, app_describe(sim->app, sim->base_url));
}

void app_installation_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct app *app = sim->app;
    struct installation *i;
    json_t *created = shape_time(1577836800000);
    json_t *document;

    if (!downstreams_installed(sim->downstreams, call->repo)) {
        json_decref(created);
        reply_error(reply, 404, "Not Found");
        return;
    }
    i = installation_of(sim->app, call->owner);
    document = json_pack(
        "{s:I, s:o, s:s, s:I, s:s, s:I, s:s, s:o, s:[s], s:O, s:O, s:n, s:n, s:n}", "id",
        (json_int_t)i->id, "account", shape_user(sim->base_url, call->owner),
        "repository_selection", "all", "app_id", (json_int_t)strtoll(app->id, NULL, 10), "app_slug",
        "crcr-sim", "target_id", (json_int_t)shape_id(call->owner), "target_type", "Organization",
        "permissions", permissions(), "events", "pull_request", "created_at", created, "updated_at",
        created, "single_file_name", "suspended_at", "suspended_by");
    json_object_set_new(
        document, "access_tokens_url",
        json_sprintf("%s/app/installations/%lld/access_tokens", sim->base_url, (long long)i->id));
    json_object_set_new(document, "repositories_url",
                        json_sprintf("%s/installation/repositories", sim->base_url));
    json_object_set_new(
        document, "html_url",
        json_sprintf("https://github.com/organizations/%s/settings/installations/%lld", i->owner,
                     (long long)i->id));
    json_decref(created);
    reply_json(reply, 200, document);
}

void app_keys_put(struct sim *sim, const struct call *call, struct reply *reply)
{
    const json_t *pems = json_object_get(call->body, "keys"), *pem;
    struct keys keys = { .n = 0 };
    struct why why;
    enum err err = OK;
    size_t i;

    json_array_foreach(pems, i, pem)
    {
        if (!err && i < KEYS_MAX)
            err = key_add(&keys, (struct str){ json_string_value(pem), json_string_length(pem) },
                          &why);
    }
    if (err || !keys.n || json_array_size(pems) > KEYS_MAX) {
        keys_free(&keys);
        reply_error(reply, 422, "keys: %s", err ? why.text : "one to four private keys, PEM");
        return;
    }
    keys_free(&sim->app->keys);
    sim->app->keys = keys;
    reply_json(reply, 200, json_pack("{s:I}", "keys", (json_int_t)keys.n));
}

static void tokens_prune(struct app *app, int64_t now_ms)
{
    struct token *token, *next;

    HASH_ITER(hh, app->tokens, token, next)
    {
        if (token->expires_ms <= now_ms)
            token_free(app, token);
    }
}

void app_token_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct app *app = sim->app;
    struct installation *i = installation_find(app, call_id(call, 0));
    json_t *names = json_object_get(call->body, "repositories"), *granted = permissions();
    json_t *wanted = json_object_get(call->body, "permissions"), *level;
    struct token *token;
    const char *name;

    if (!i) {
        json_decref(granted);
        reply_error(reply, 404, "Not Found");
        return;
    }
    json_object_foreach(wanted, name, level)
    {
        const char *has = json_string_value(json_object_get(granted, name));
        if (has && (strcmp(has, "write") == 0 || json_equal(level, json_object_get(granted, name))))
            continue;
        json_decref(granted);
        reply_error(reply, 422, "The permissions requested are not granted to this installation.");
        return;
    }
    tokens_prune(app, call->now_ms);
    token = mem_alloc(1, sizeof(*token));
    snprintf(token->text, sizeof(token->text), "ghs_");
    random_hex(token->text + 4, 18);
    token->installation = i;
    token->permissions = json_object_size(wanted) ? json_incref(wanted) : json_incref(granted);
    str_copy(token->name, sizeof(token->name), str_of(json_string_value(json_array_get(names, 0))));
    token->expires_ms = call->now_ms + app->token_ttl_s * 1000;
    HASH_ADD_STR(app->tokens, text, token);
    reply_json(reply, 201,
               json_pack("{s:s, s:o, s:O, s:s}", "token", token->text, "expires_at",
                         shape_time(token->expires_ms), "permissions", token->permissions,
                         "repository_selection", token->name[0] ? "selected" : "all"));
    json_decref(granted);
}

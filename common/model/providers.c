#include "providers.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as mem_alloc; the default is exit() */
#include <uthash.h>

#include "../base/mem.h"
#include "callback.h"
#include "ids.h"
#include "yaml_doc.h"

#define UUID_LEN      36
#define UUIDS_LEN     (UUID_LEN + 1 + UUID_LEN)
#define PIPELINES_MAX 10000
#define PROVIDERS_MAX 16

struct mapped {
    struct provider_pipeline shown;
    struct provider_claim *claims;
    char *key;
    int line;
    UT_hash_handle hh;
};

/* What the relay trusts is compiled in or configured: a file may repeat it, never change it. */
enum { GITHUB, BUILDKITE, N_KNOWN };
static const struct provider known[N_KNOWN] = {
    [GITHUB] = { .name = "github",
                 .issuer = CALLBACK_ISSUER_ACTIONS,
                 .jwks_uri = "https://token.actions.githubusercontent.com/.well-known/jwks" },
    [BUILDKITE] = { .name = "buildkite",
                    .issuer = CALLBACK_ISSUER_BUILDKITE,
                    .jwks_uri = "https://agent.buildkite.com/.well-known/jwks",
                    .key = { "organization_id", "pipeline_id" } },
};

struct providers {
    struct yaml_doc *doc;               /* owns every text that is not compiled in */
    struct provider all[PROVIDERS_MAX]; /* the known ones first */
    size_t n;
};

struct map_parse {
    struct providers *providers;
    struct why *why;
};

#define FAULT(r, at, ...) yaml_doc_fault((r)->providers->doc, at, (r)->why, __VA_ARGS__)
#define EXCERPT(node)     yaml_doc_excerpt((node)->text).text

/* ---- pipelines ------------------------------------------------------------------------------- */

static bool is_buildkite(const struct provider *provider)
{
    return strcmp(provider->issuer, CALLBACK_ISSUER_BUILDKITE) == 0;
}

/* RFC 9562 section 4: 8-4-4-4-12 hex digits. */
static bool is_uuid(const char *s)
{
    for (size_t i = 0; i < UUID_LEN; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f');
        if (hyphen ? s[i] != '-' : !hex)
            return false;
    }
    return true;
}

/* One value for each claim. Where there are several, none may hold a '/': else two tokens could
 * have one key. */
static bool is_key(const struct provider *provider, struct str text)
{
    for (size_t i = 1; i < PROVIDER_KEY_MAX && provider->key[i]; i++) {
        ptrdiff_t slash = str_find(text, '/');
        if (slash <= 0)
            return false;
        text = str_from(text, (size_t)slash + 1);
    }
    return text.len > 0 && (!provider->key[1] || str_find(text, '/') < 0);
}

/* Lower-cases "uuid/uuid" into to; false when it is something else. */
static bool uuids_of(char to[UUIDS_LEN + 1], struct str text)
{
    return text.len == UUIDS_LEN && str_lower(to, UUIDS_LEN + 1, text) && is_uuid(to) &&
           to[UUID_LEN] == '/' && is_uuid(to + UUID_LEN + 1);
}

static enum err pipeline_add(struct map_parse *r, struct provider *provider,
                             const struct yaml_doc_node *key, struct mapped **ret)
{
    char uuids[UUIDS_LEN + 1];
    struct str text = key->text;
    struct mapped *p;
    if (is_buildkite(provider)) {
        if (!uuids_of(uuids, text))
            return FAULT(r, key,
                         "\"%s\" is not a pipeline; accepted is <organization id>/<pipeline "
                         "id>, two UUIDs (names can be changed, ids cannot)",
                         EXCERPT(key));
        text = str_of(uuids);
    } else if (!is_key(provider, text)) {
        return FAULT(r, key,
                     "\"%s\" is not a pipeline of %s; accepted is one value for each claim of its "
                     "key, joined by \"/\"; of several none may hold a \"/\"",
                     EXCERPT(key), provider->name);
    }
    HASH_FIND(hh, provider->by_key, text.ptr, text.len, p);
    if (p)
        return FAULT(r, key, "%s is listed twice; the first is at line %d", EXCERPT(key), p->line);
    if (HASH_COUNT(provider->by_key) == PIPELINES_MAX)
        return FAULT(r, key, "more than %d pipelines", PIPELINES_MAX);
    p = mem_alloc(1, sizeof(*p));
    p->key = str_dup(text);
    p->line = key->line;
    HASH_ADD_KEYPTR(hh, provider->by_key, p->key, text.len, p);
    *ret = p;
    return OK;
}

static enum err read_repo(struct map_parse *r, struct mapped *p, const struct yaml_doc_node *node)
{
    if (node->kind != YAML_DOC_TEXT || !repo_valid(node->text))
        return FAULT(r, node, "%s is not a repository; accepted is " REPO_ACCEPTED,
                     yaml_doc_describe(node).text);
    p->shown.repo = node->text;
    return OK;
}

/* One value, or a list of which any may match. An empty list would let nothing through. */
static enum err read_values(struct map_parse *r, struct provider_claim *claim,
                            const struct yaml_doc_node *node)
{
    bool list = node->kind == YAML_DOC_LIST;
    if (node->kind == YAML_DOC_MAP || yaml_doc_is_null(node) || (list && !node->first))
        return FAULT(r, node, "the claim %s has no value; accepted is a text or a list of texts",
                     yaml_doc_excerpt(claim->name).text);
    struct str *values = mem_alloc(list ? node->n : 1, sizeof(*values));
    claim->values = values;
    for (const struct yaml_doc_node *at = list ? node->first : node; at;
         at = list ? at->next : NULL) {
        if (at->kind != YAML_DOC_TEXT || yaml_doc_is_null(at))
            return FAULT(r, at, "%s as a value of the claim %s; accepted are texts",
                         yaml_doc_kind_name(at), yaml_doc_excerpt(claim->name).text);
        values[claim->n_values++] = at->text;
    }
    return OK;
}

static enum err read_claims(struct map_parse *r, struct mapped *p, const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (yaml_doc_is_null(node))
        return OK;
    if (node->kind != YAML_DOC_MAP)
        return FAULT(r, node, "required_claims is %s; accepted is a mapping of claim to values",
                     yaml_doc_kind_name(node));
    p->claims = mem_alloc(node->n / 2 + 1, sizeof(*p->claims));
    p->shown.claims = p->claims;
    for (const struct yaml_doc_node *key = node->first; key && !err; key = key->next->next) {
        struct provider_claim *claim = &p->claims[p->shown.n_claims++];
        claim->name = key->text;
        err = read_values(r, claim, key->next);
    }
    return err;
}

/* owner/repo, or {repo: owner/repo, required_claims: {…}}. */
static enum err read_pipeline(struct map_parse *r, struct provider *provider,
                              const struct yaml_doc_node *key)
{
    struct mapped *p = NULL;
    const struct yaml_doc_node *node = key->next;
    enum err err = pipeline_add(r, provider, key, &p);
    if (err || node->kind != YAML_DOC_MAP)
        return err ? err : read_repo(r, p, node);
    for (const struct yaml_doc_node *at = node->first; at && !err; at = at->next->next) {
        if (str_is(at->text, "repo"))
            err = read_repo(r, p, at->next);
        else if (str_is(at->text, "required_claims"))
            err = read_claims(r, p, at->next);
        else
            err = FAULT(r, at, "unknown key \"%s\"; accepted are repo and required_claims",
                        EXCERPT(at));
    }
    if (!err && !p->shown.repo.ptr)
        err = FAULT(r, key, "the pipeline %s has no repo", EXCERPT(key));
    return err;
}

static enum err read_repo_map(struct map_parse *r, struct provider *provider,
                              const struct yaml_doc_node *key)
{
    enum err err = OK;
    if (yaml_doc_is_null(key->next))
        return OK;
    if (key->next->kind != YAML_DOC_MAP)
        return FAULT(r, key->next, "%s is %s; accepted is a mapping of pipeline to repository",
                     EXCERPT(key), yaml_doc_kind_name(key->next));
    for (const struct yaml_doc_node *at = key->next->first; at && !err; at = at->next->next)
        err = read_pipeline(r, provider, at);
    return err;
}

/* ---- providers ------------------------------------------------------------------------------- */

/* What is compiled in may be repeated. */
static enum err read_same(struct map_parse *r, const struct provider *provider,
                          const struct yaml_doc_node *key, const char *must_be)
{
    if (key->next->kind != YAML_DOC_TEXT || !str_is(key->next->text, must_be))
        return FAULT(r, key->next, "the %s of %s cannot be changed here; accepted is %s",
                     EXCERPT(key), provider->name, must_be);
    return OK;
}

/* NULL for what is no text, or nothing. */
static const char *text_in(const struct yaml_doc_node *node)
{
    bool is_text = node->kind == YAML_DOC_TEXT && !yaml_doc_is_null(node) && node->text.len > 0 &&
                   strlen(node->text.ptr) == node->text.len;
    return is_text ? node->text.ptr : NULL;
}

static enum err read_issuer(struct map_parse *r, struct provider *provider,
                            const struct yaml_doc_node *node)
{
    const char *issuer = text_in(node);
    if (!issuer)
        return FAULT(r, node, "issuer is %s; accepted is the claim iss of the tokens, a text",
                     yaml_doc_kind_name(node));
    for (size_t i = 0; i < r->providers->n; i++)
        if (r->providers->all[i].issuer && strcmp(r->providers->all[i].issuer, issuer) == 0)
            return FAULT(r, node, "%s is the issuer of %s; accepted is one provider an issuer",
                         EXCERPT(node), r->providers->all[i].name);
    provider->issuer = issuer;
    return OK;
}

static enum err read_key(struct map_parse *r, struct provider *provider,
                         const struct yaml_doc_node *node)
{
    size_t n = 0;
    if (node->kind != YAML_DOC_LIST || node->n == 0 || node->n > PROVIDER_KEY_MAX)
        return FAULT(r, node,
                     "key must name the claims that tell pipelines apart; accepted is a "
                     "list of 1 to %d",
                     PROVIDER_KEY_MAX);
    for (const struct yaml_doc_node *at = node->first; at; at = at->next) {
        provider->key[n] = text_in(at);
        if (!provider->key[n++])
            return FAULT(r, at, "%s in key; accepted are names of claims", yaml_doc_kind_name(at));
    }
    return OK;
}

/* *repo_map: to be read when issuer and key are known, whatever the order of the file. */
static enum err read_member(struct map_parse *r, struct provider *provider,
                            const struct yaml_doc_node *key, const struct yaml_doc_node **repo_map)
{
    bool fixed = provider->jwks_uri;
    bool maps = !fixed || provider->key[0];
    if (str_is(key->text, "issuer"))
        return fixed ? read_same(r, provider, key, provider->issuer)
                     : read_issuer(r, provider, key->next);
    if (fixed && str_is(key->text, "jwks_uri"))
        return read_same(r, provider, key, provider->jwks_uri);
    if (!fixed && str_is(key->text, "key"))
        return read_key(r, provider, key->next);
    if (!maps || !str_is(key->text, "repo_map"))
        return FAULT(r, key, "unknown key \"%s\"; accepted are issuer, %s%s", EXCERPT(key),
                     fixed ? "jwks_uri" : "key", maps ? ", repo_map" : "");
    *repo_map = key;
    return OK;
}

static enum err provider_get(struct map_parse *r, const struct yaml_doc_node *key,
                             struct provider **ret)
{
    struct providers *p = r->providers;
    for (size_t i = 0; i < p->n; i++) {
        *ret = &p->all[i];
        if (str_is(key->text, (*ret)->name))
            return OK;
    }
    if (p->n == PROVIDERS_MAX)
        return FAULT(r, key, "more than %d providers", PROVIDERS_MAX);
    *ret = &p->all[p->n++];
    (*ret)->name = key->text.ptr;
    return OK;
}

static enum err read_provider(struct map_parse *r, const struct yaml_doc_node *key)
{
    const struct yaml_doc_node *repo_map = NULL;
    struct provider *provider;
    enum err err = provider_get(r, key, &provider);
    if (err || (provider->jwks_uri && yaml_doc_is_null(key->next)))
        return err;
    if (key->next->kind != YAML_DOC_MAP)
        return FAULT(r, key->next, "the provider %s is %s; accepted is a mapping", EXCERPT(key),
                     yaml_doc_kind_name(key->next));
    for (const struct yaml_doc_node *at = key->next->first; at && !err; at = at->next->next)
        err = read_member(r, provider, at, &repo_map);
    if (!err && !provider->jwks_uri && (!provider->issuer || !provider->key[0]))
        return FAULT(r, key, "the provider %s has no %s; accepted are issuer, key, repo_map",
                     EXCERPT(key), provider->issuer ? "key" : "issuer");
    return err || !repo_map ? err : read_repo_map(r, provider, repo_map);
}

static enum err read_providers(struct map_parse *r, const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (yaml_doc_is_null(node))
        return OK;
    if (node->kind != YAML_DOC_MAP)
        return FAULT(r, node, "providers is %s; accepted is a mapping of provider to settings",
                     yaml_doc_kind_name(node));
    for (const struct yaml_doc_node *key = node->first; key && !err; key = key->next->next)
        err = read_provider(r, key);
    return err;
}

static enum err read_root(struct map_parse *r, const struct yaml_doc_node *root)
{
    enum err err = OK;
    if (root->kind != YAML_DOC_MAP)
        return FAULT(r, root, "%s where a mapping is expected; accepted is the key providers",
                     yaml_doc_kind_name(root));
    for (const struct yaml_doc_node *key = root->first; key && !err; key = key->next->next) {
        if (str_is(key->text, "buildkite")) /* the older, flat form */
            err = read_repo_map(r, &r->providers->all[BUILDKITE], key);
        else if (str_is(key->text, "providers"))
            err = read_providers(r, key->next);
        else
            err = FAULT(r, key, "unknown key \"%s\"; accepted are providers and buildkite",
                        EXCERPT(key));
    }
    return err;
}

enum err providers_parse(struct providers **ret, const char *file, struct str yaml, struct why *why)
{
    struct providers *p = mem_alloc(1, sizeof(*p));
    struct map_parse r = { .providers = p, .why = why };
    memcpy(p->all, known, sizeof(known));
    p->n = N_KNOWN;
    enum err err = yaml_doc_parse(&p->doc, file, yaml, why);
    if (!err && yaml_doc_root(p->doc))
        err = read_root(&r, yaml_doc_root(p->doc));
    if (err) {
        providers_free(p);
        return err;
    }
    *ret = p;
    return OK;
}

static void pipelines_free(struct mapped *by_key)
{
    struct mapped *at, *next;
    HASH_ITER(hh, by_key, at, next)
    {
        HASH_DEL(by_key, at);
        for (size_t i = 0; i < at->shown.n_claims; i++)
            free((void *)at->claims[i].values);
        free(at->claims);
        free(at->key);
        free(at);
    }
}

void providers_free(struct providers *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        pipelines_free(p->all[i].by_key);
    yaml_doc_free(p->doc);
    free(p);
}

size_t providers_size(const struct providers *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += HASH_COUNT(p->all[i].by_key);
    return n;
}

const struct provider *providers_of(const struct providers *p, struct str issuer)
{
    const struct provider *all = p ? p->all : known;
    size_t n = p ? p->n : N_KNOWN;
    for (size_t i = 0; i < n; i++)
        if (str_is(issuer, all[i].issuer))
            return all[i].key[0] ? &all[i] : NULL;
    return NULL;
}

const struct provider_pipeline *providers_find(const struct provider *provider, struct str key)
{
    char uuids[UUIDS_LEN + 1];
    struct mapped *found;
    if (is_buildkite(provider)) {
        if (!uuids_of(uuids, key))
            return NULL;
        key = str_of(uuids);
    }
    HASH_FIND(hh, provider->by_key, key.ptr, key.len, found);
    return found ? &found->shown : NULL;
}

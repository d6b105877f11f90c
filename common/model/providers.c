#include "providers.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as mem_alloc; the default is exit() */
#include <uthash.h>

#include "../base/mem.h"
#include "ids.h"
#include "yaml_doc.h"

#define UUID_LEN     36
#define KEY_LEN      (UUID_LEN + 1 + UUID_LEN)
#define PIPELINE_MAX 10000

struct pipeline {
    struct provider_pipeline shown;
    struct provider_claim *claims;
    char key[KEY_LEN + 1]; /* organization/pipeline in lower case; the ids are borrowed from it */
    int line;
    UT_hash_handle hh;
};

struct providers {
    struct yaml_doc *doc; /* owns every other text */
    struct pipeline *by_key;
};

struct reading {
    struct providers *providers;
    struct why *why;
};

#define FAULT(r, at, ...) yaml_doc_fault((r)->providers->doc, at, (r)->why, __VA_ARGS__)
#define EXCERPT(node)     yaml_doc_excerpt((node)->text).text

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

/* Lower-cases "uuid/uuid" into to; false when it is something else. */
static bool key_of(char to[KEY_LEN + 1], struct str text)
{
    return text.len == KEY_LEN && str_lower(to, KEY_LEN + 1, text) && is_uuid(to) &&
           to[UUID_LEN] == '/' && is_uuid(to + UUID_LEN + 1);
}

static enum err pipeline_add(struct reading *r, const struct yaml_doc_node *key,
                             struct pipeline **ret)
{
    char text[KEY_LEN + 1];
    struct pipeline *p;
    if (!key_of(text, key->text))
        return FAULT(r, key,
                     "\"%s\" is not a pipeline; accepted is <organization id>/<pipeline "
                     "id>, two UUIDs (names can be changed, ids cannot)",
                     EXCERPT(key));
    HASH_FIND_STR(r->providers->by_key, text, p);
    if (p)
        return FAULT(r, key, "%s is listed twice; the first is at line %d", EXCERPT(key), p->line);
    if (HASH_COUNT(r->providers->by_key) == PIPELINE_MAX)
        return FAULT(r, key, "more than %d pipelines", PIPELINE_MAX);
    p = mem_alloc(1, sizeof(*p));
    memcpy(p->key, text, sizeof(text));
    p->line = key->line;
    p->shown.organization_id = (struct str){ p->key, UUID_LEN };
    p->shown.pipeline_id = (struct str){ p->key + UUID_LEN + 1, UUID_LEN };
    HASH_ADD_STR(r->providers->by_key, key, p);
    *ret = p;
    return OK;
}

static enum err read_repo(struct reading *r, struct pipeline *p, const struct yaml_doc_node *node)
{
    if (node->kind != YAML_DOC_TEXT || !repo_valid(node->text))
        return FAULT(r, node, "%s is not a repository; accepted is owner/repo",
                     yaml_doc_describe(node).text);
    p->shown.repo = node->text;
    return OK;
}

/* One value, or a list of which any may match. An empty list would let nothing through. */
static enum err read_values(struct reading *r, struct provider_claim *claim,
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

static enum err read_claims(struct reading *r, struct pipeline *p, const struct yaml_doc_node *node)
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
static enum err read_pipeline(struct reading *r, const struct yaml_doc_node *key)
{
    struct pipeline *p = NULL;
    const struct yaml_doc_node *node = key->next;
    enum err err = pipeline_add(r, key, &p);
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

static enum err read_repo_map(struct reading *r, const struct yaml_doc_node *key)
{
    enum err err = OK;
    if (yaml_doc_is_null(key->next))
        return OK;
    if (key->next->kind != YAML_DOC_MAP)
        return FAULT(r, key->next, "%s is %s; accepted is a mapping of pipeline to repository",
                     EXCERPT(key), yaml_doc_kind_name(key->next));
    for (const struct yaml_doc_node *at = key->next->first; at && !err; at = at->next->next)
        err = read_pipeline(r, at);
    return err;
}

/* What the relay trusts is compiled in or configured: a file may repeat it, never change it. */
static const struct provider {
    const char *name, *issuer, *jwks_uri;
    bool has_repo_map;
} known[] = {
    { "github", "https://token.actions.githubusercontent.com",
      "https://token.actions.githubusercontent.com/.well-known/jwks", false },
    { "buildkite", "https://agent.buildkite.com", "https://agent.buildkite.com/.well-known/jwks",
      true },
};

static enum err read_provider_key(struct reading *r, const struct provider *provider,
                                  const struct yaml_doc_node *key)
{
    bool issuer = str_is(key->text, "issuer");
    if (issuer || str_is(key->text, "jwks_uri")) {
        const char *must_be = issuer ? provider->issuer : provider->jwks_uri;
        if (key->next->kind != YAML_DOC_TEXT || !str_is(key->next->text, must_be))
            return FAULT(r, key->next, "the %s of %s cannot be changed here; accepted is %s",
                         EXCERPT(key), provider->name, must_be);
        return OK;
    }
    if (provider->has_repo_map && str_is(key->text, "repo_map"))
        return read_repo_map(r, key);
    return FAULT(r, key, "unknown key \"%s\"; accepted are issuer, jwks_uri%s", EXCERPT(key),
                 provider->has_repo_map ? ", repo_map" : "");
}

static enum err read_provider(struct reading *r, const struct yaml_doc_node *key)
{
    const struct provider *provider = NULL;
    enum err err = OK;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(key->text, known[i].name))
            provider = &known[i];
    if (!provider)
        return FAULT(r, key, "unknown provider \"%s\"; accepted are github and buildkite",
                     EXCERPT(key));
    if (yaml_doc_is_null(key->next))
        return OK;
    if (key->next->kind != YAML_DOC_MAP)
        return FAULT(r, key->next, "the provider %s is %s; accepted is a mapping", provider->name,
                     yaml_doc_kind_name(key->next));
    for (const struct yaml_doc_node *at = key->next->first; at && !err; at = at->next->next)
        err = read_provider_key(r, provider, at);
    return err;
}

static enum err read_providers(struct reading *r, const struct yaml_doc_node *node)
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

static enum err read_root(struct reading *r, const struct yaml_doc_node *root)
{
    enum err err = OK;
    if (root->kind != YAML_DOC_MAP)
        return FAULT(r, root, "%s where a mapping is expected; accepted is the key providers",
                     yaml_doc_kind_name(root));
    for (const struct yaml_doc_node *key = root->first; key && !err; key = key->next->next) {
        if (str_is(key->text, "buildkite")) /* the older, flat form */
            err = read_repo_map(r, key);
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
    struct reading r = { .providers = p, .why = why };
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

void providers_free(struct providers *p)
{
    struct pipeline *at, *next;
    if (!p)
        return;
    HASH_ITER(hh, p->by_key, at, next)
    {
        HASH_DEL(p->by_key, at);
        for (size_t i = 0; i < at->shown.n_claims; i++)
            free((void *)at->claims[i].values);
        free(at->claims);
        free(at);
    }
    yaml_doc_free(p->doc);
    free(p);
}

size_t providers_size(const struct providers *p)
{
    return HASH_COUNT(p->by_key);
}

const struct provider_pipeline *providers_find(const struct providers *p,
                                               struct str organization_id, struct str pipeline_id)
{
    char text[KEY_LEN], key[KEY_LEN + 1];
    struct pipeline *found;
    if (organization_id.len != UUID_LEN || pipeline_id.len != UUID_LEN)
        return NULL;
    memcpy(text, organization_id.ptr, UUID_LEN);
    text[UUID_LEN] = '/';
    memcpy(text + UUID_LEN + 1, pipeline_id.ptr, UUID_LEN);
    if (!key_of(key, (struct str){ text, KEY_LEN }))
        return NULL;
    HASH_FIND_STR(p->by_key, key, found);
    return found ? &found->shown : NULL;
}

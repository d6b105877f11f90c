/* CI providers whose tokens do not name a repository: which pipeline speaks for which downstream
 * repository (deploy/ALLOWLIST.md, "The providers file"). A pipeline is named by some claims of the
 * token, the key of its provider. The file can never make an issuer trusted. PURE. */
#ifndef CRCR_MODEL_PROVIDERS_H
#define CRCR_MODEL_PROVIDERS_H

#include "../base/err.h"
#include "../base/str.h"

#define PROVIDER_KEY_MAX 4

struct providers;

/* The owner is the struct providers, or nobody when it is a provider that is compiled in. */
struct provider {
    const char *name, *issuer;         /* issuer: the claim iss of its tokens */
    const char *key[PROVIDER_KEY_MAX]; /* names of claims; NULL after the last */
    const char *jwks_uri;              /* known only of those that are compiled in */
    struct mapped *by_key;             /* private */
};
struct provider_claim {
    struct str name;
    const struct str *values; /* one of them must match */
    size_t n_values;
};
struct provider_pipeline {
    struct str repo;
    const struct provider_claim *claims;
    size_t n_claims;
};

/* Errors as allowlist_parse. */
enum err providers_parse(struct providers **ret, const char *file, struct str yaml,
                         struct why *why) MUST_CHECK;
void providers_free(struct providers *p);
/* How many pipelines. */
size_t providers_size(const struct providers *p);
/* Who maps the tokens of that issuer; NULL: nobody, their claim `repository` counts. Buildkite is
 * always found. p may be NULL: no file. */
const struct provider *providers_of(const struct providers *p, struct str issuer);
/* key: the values of the provider's claims with '/' between them. NULL when that pipeline is not
 * registered. The case of Buildkite's ids is ignored. */
const struct provider_pipeline *providers_find(const struct provider *provider, struct str key);

#endif

/* CI providers other than GitHub Actions: which Buildkite pipeline speaks for which downstream
 * repository (behaviour.md, callback step 3). The file can never add an issuer or a key. PURE. */
#ifndef CRCR_MODEL_PROVIDERS_H
#define CRCR_MODEL_PROVIDERS_H

#include "../base/err.h"
#include "../base/str.h"

struct providers;

struct provider_claim {
    struct str name;
    const struct str *values; /* one of them must match */
    size_t n_values;
};
struct provider_pipeline {
    struct str organization_id, pipeline_id; /* lower-case UUIDs */
    struct str repo;
    const struct provider_claim *claims;
    size_t n_claims;
};

/* Errors as allowlist_parse. */
enum err providers_parse(struct providers **ret, const char *file, struct str yaml,
                         struct why *why) MUST_CHECK;
void providers_free(struct providers *p);
size_t providers_size(const struct providers *p);
/* NULL when that pipeline is not registered; case of the ids is ignored. */
const struct provider_pipeline *providers_find(const struct providers *p,
                                               struct str organization_id, struct str pipeline_id);

#endif

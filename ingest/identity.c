#include "identity.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../common/base/buf.h"
#include "../common/model/ids.h"

#define KEY_MAX_BYTES 1024

static struct str claim_text(const json_t *claims, const char *name)
{
    const json_t *value = json_object_get(claims, name);
    return (struct str){ json_string_value(value), json_string_length(value) };
}

/* A claim as text: strings as they are, numbers and truth values as JSON writes them. */
static struct str claim_as_text(const json_t *value, char to[32])
{
    if (json_is_string(value))
        return (struct str){ json_string_value(value), json_string_length(value) };
    if (json_is_integer(value)) {
        int n = snprintf(to, 32, "%lld", (long long)json_integer_value(value));
        return (struct str){ to, (size_t)n };
    }
    if (json_is_boolean(value))
        return json_is_true(value) ? STR_LIT("true") : STR_LIT("false");
    return STR_NONE;
}

/* ---- the repository -------------------------------------------------------------------------- */

static bool repo_set(char repo[REPO_MAX + 1], struct str text, struct answer *a)
{
    if (!repo_valid(text) || !str_copy(repo, REPO_MAX + 1, text))
        return answer_refuse(a, 401, "claims_malformed",
                             "the token names no repository (owner/repo), and the providers file "
                             "does not map its issuer");
    return true;
}

static bool claim_matches(const json_t *claims, const struct provider_claim *wanted)
{
    char number[32];
    struct str text =
        claim_as_text(json_object_getn(claims, wanted->name.ptr, wanted->name.len), number);
    for (size_t i = 0; text.ptr && i < wanted->n_values; i++)
        if (str_eq(text, wanted->values[i]))
            return true;
    return false;
}

static bool key_read(const json_t *claims, const struct provider *provider, struct buf *key,
                     struct answer *a)
{
    for (size_t i = 0; i < PROVIDER_KEY_MAX && provider->key[i]; i++) {
        char number[32];
        struct str text = claim_as_text(json_object_get(claims, provider->key[i]), number);
        if (text.len == 0)
            return answer_refuse(a, 401, "claims_missing", "the token lacks the claim %s",
                                 provider->key[i]);
        if (i > 0)
            buf_putc(key, '/');
        buf_put(key, text);
    }
    return true;
}

/* The claim `repository` of such a token counts for nothing. */
static bool pipeline_check(const json_t *claims, const struct provider *provider,
                           char repo[REPO_MAX + 1], struct answer *a)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(KEY_MAX_BYTES);
    if (!key_read(claims, provider, &key, a))
        return false;
    const struct provider_pipeline *found =
        buf_full(&key) ? NULL : providers_find(provider, buf_str(&key));
    if (!found)
        return answer_refuse(a, 403, "pipeline_unregistered",
                             "the pipeline %.*s of %s is registered for no repository",
                             STR_ARG(str_cut(buf_str(&key), 200)), provider->name);
    for (size_t i = 0; i < found->n_claims; i++)
        if (!claim_matches(claims, &found->claims[i]))
            return answer_refuse(a, 403, "claim_mismatch",
                                 "claim %.*s has none of the values registered for this pipeline",
                                 STR_ARG(found->claims[i].name));
    return repo_set(repo, found->repo, a);
}

bool identity_check(struct str issuer, const json_t *claims, const struct providers *providers,
                    char repo[REPO_MAX + 1], struct answer *a)
{
    const struct provider *provider = providers_of(providers, issuer);
    return provider ? pipeline_check(claims, provider, repo, a)
                    : repo_set(repo, claim_text(claims, "repository"), a);
}

bool identity_ids_check(struct str issuer, const json_t *claims,
                        const struct allowlist_entry *entry, struct answer *a)
{
    const struct {
        const char *claim;
        int64_t id;
    } wanted[] = { { "repository_id", entry->repo_id },
                   { "repository_owner_id", entry->owner_id } };
    if (!str_is(issuer, CALLBACK_ISSUER_ACTIONS))
        return true;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        char number[32], id[STR_NUMBER_SIZE];
        struct str text = claim_as_text(json_object_get(claims, wanted[i].claim), number);
        if (wanted[i].id > 0 && !str_eq(text, str_number(id, wanted[i].id)))
            return answer_refuse(a, 403, "other_repository",
                                 "claim %s is not the one of the allowlist: its name was "
                                 "registered anew, or the allowlist is wrong",
                                 wanted[i].claim);
    }
    return true;
}

/* ---- the run -------------------------------------------------------------------------------- */

void run_claims_read(struct str issuer, const json_t *claims, struct run_claims *ret)
{
    *ret = (struct run_claims){ .wanted = str_is(issuer, CALLBACK_ISSUER_ACTIONS) };
    if (!ret->wanted)
        return;
    /* GitHub sends both as text. */
    (void)str_copy(ret->run_id, sizeof(ret->run_id), claim_text(claims, "run_id"));
    (void)str_copy(ret->run_attempt, sizeof(ret->run_attempt), claim_text(claims, "run_attempt"));
}

static bool claim_check(const char *name, const char *claim, const char *field, struct answer *a)
{
    if (claim[0] == '\0')
        return answer_refuse(a, 403, "run_claims_missing",
                             "the token has no claim %s; accepted is a token of GitHub Actions "
                             "as GitHub issues it",
                             name);
    if (strcmp(claim, field) != 0)
        return answer_refuse(a, 403, "other_run",
                             "workflow.%s differs from the claim %s of the token; accepted is %s: "
                             "a job reports on its own run only",
                             name, name, claim);
    return true;
}

bool run_claims_check(const struct run_claims *claims, const struct callback *fields,
                      struct answer *a)
{
    return !claims->wanted ||
           (claim_check("run_id", claims->run_id, fields->run_id, a) &&
            claim_check("run_attempt", claims->run_attempt, fields->run_attempt, a));
}

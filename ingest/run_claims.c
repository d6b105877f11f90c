#include "run_claims.h"

#include <jansson.h>
#include <string.h>

/* GitHub sends both as text. */
static void claim_copy(const json_t *claims, const char *name, char *to, size_t size)
{
    const json_t *value = json_object_get(claims, name);
    struct str text = { json_string_value(value), json_string_length(value) };
    if (!str_copy(to, size, text))
        to[0] = '\0';
}

void run_claims_read(struct str issuer, struct str claims, struct run_claims *ret)
{
    *ret = (struct run_claims){ .wanted = str_is(issuer, CALLBACK_ISSUER_ACTIONS) };
    if (!ret->wanted)
        return;
    json_t *document = json_loadb(claims.ptr, claims.len, JSON_REJECT_DUPLICATES, NULL);
    claim_copy(document, "run_id", ret->run_id, sizeof(ret->run_id));
    claim_copy(document, "run_attempt", ret->run_attempt, sizeof(ret->run_attempt));
    json_decref(document);
}

static bool claim_check(const char *name, const char *claim, const char *field, struct verdict *v)
{
    if (claim[0] == '\0')
        return verdict_refuse(v, 403, "run_claims_missing",
                              "the token has no claim %s; accepted is a token of GitHub Actions "
                              "as GitHub issues it",
                              name);
    if (strcmp(claim, field) != 0)
        return verdict_refuse(v, 403, "other_run",
                              "workflow.%s differs from the claim %s of the token; accepted is %s: "
                              "a job reports on its own run only",
                              name, name, claim);
    return true;
}

bool run_claims_check(const struct run_claims *claims, const struct callback *fields,
                      struct verdict *v)
{
    return !claims->wanted ||
           (claim_check("run_id", claims->run_id, fields->run_id, v) &&
            claim_check("run_attempt", claims->run_attempt, fields->run_attempt, v));
}

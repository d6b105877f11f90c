/* Claims of verified tokens: what an issuer lets its users choose is theirs. Who is known is an
 * owner/repo, of an issuer that is mapped only what is registered. The first byte chooses the
 * issuer. */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "common/model/ids.h"
#include "ingest/identity.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char registered[] = "providers:\n"
                                 "  buildkite:\n"
                                 "    repo_map:\n"
                                 "      0191f7a4-1c2d-7e3f-8a4b-5c6d7e8f9a0b/"
                                 "018c1234-aaaa-4bbb-8ccc-1234567890ab:\n"
                                 "        repo: org/kite\n"
                                 "        required_claims:\n"
                                 "          build_branch: [main]\n"
                                 "  gitlab:\n"
                                 "    issuer: https://gitlab.example\n"
                                 "    key: [project_path, number]\n"
                                 "    repo_map: {oot/7: org/lab}\n";

static const struct {
    const char *issuer, *repo; /* NULL: any */
} issuers[] = { { CALLBACK_ISSUER_ACTIONS, NULL },
                { "https://agent.buildkite.com", "org/kite" },
                { "https://gitlab.example", "org/lab" } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct providers *providers;
    static struct callback none;
    char repo[REPO_MAX + 1] = "";
    struct answer v = { 0 };
    struct run_claims run;
    struct why why;
    if (!providers)
        must(!providers_parse(&providers, "f.yml", str_of(registered), &why));
    if (size == 0)
        return 0;
    size_t which = data[0] % (sizeof(issuers) / sizeof(issuers[0]));
    struct str issuer = str_of(issuers[which].issuer);
    json_t *claims =
        json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL); /* as jwt.c */
    if (!json_is_object(claims)) {
        json_decref(claims);
        return 0;
    }
    if (identity_check(issuer, claims, providers, repo, &v))
        must(repo_valid(str_of(repo)) &&
             (!issuers[which].repo || strcmp(repo, issuers[which].repo) == 0));
    else
        must(v.status == 401 || v.status == 403);
    run_claims_read(issuer, claims, &run);
    json_decref(claims);
    must(run.wanted == !which);
    if (run.wanted) /* no claim is equal to no field */
        must(!run_claims_check(&run, &none, &v) && v.status == 403);
    return 0;
}

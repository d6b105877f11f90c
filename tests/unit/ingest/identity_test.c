/* Which repository the claims of a token prove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "ingest/identity.h"

#define ACTIONS "https://token.actions.githubusercontent.com"
#define ORG     "0190a1b2-0000-4000-8000-000000000001"
#define PIPE    "0190a1b2-0000-4000-8000-000000000002"
#define PIPE2   "0190a1b2-0000-4000-8000-000000000003"
#define GITLAB  "https://gitlab.vendor.example"
#define TWO     "https://ci.vendor.example" /* its key is two claims */

static struct providers *providers;
static char repo[REPO_MAX + 1];
static struct answer answer;

static int providers_make(void **state)
{
    (void)state;
    struct why why;
    const char yaml[] = "providers:\n"
                        "  buildkite:\n"
                        "    repo_map:\n"
                        "      " ORG "/" PIPE ": org/plain\n"
                        "      " ORG "/" PIPE2 ":\n"
                        "        repo: org/strict\n"
                        "        required_claims:\n"
                        "          build_branch: [main, release]\n"
                        "          build_number: [7]\n"
                        "  gitlab:\n"
                        "    issuer: " GITLAB "\n"
                        "    key: [project_path]\n"
                        "    repo_map:\n"
                        "      vendor/ci/oot: org/oot\n"
                        "      vendor/main:\n"
                        "        repo: org/main\n"
                        "        required_claims: {ref_protected: 'true'}\n"
                        "  two:\n"
                        "    issuer: " TWO "\n"
                        "    key: [folder, number]\n"
                        "    repo_map: {oot/7: org/seven}\n";
    if (!providers_parse(&providers, "providers.yml", str_of(yaml), &why))
        return 0;
    print_error("%s\n", why.text);
    return -1;
}

static int providers_drop(void **state)
{
    (void)state;
    providers_free(providers);
    return 0;
}

static bool checked(const char *issuer, const char *claims)
{
    repo[0] = '\0';
    answer = (struct answer){ 0 };
    json_auto_t *document = json_loads(claims, JSON_REJECT_DUPLICATES, NULL); /* as jwt.c */
    return identity_check(str_of(issuer), document, providers, repo, &answer);
}

static void assert_status(const char *issuer, const char *claims, int status)
{
    assert_false(checked(issuer, claims));
    assert_int_equal(answer.status, status);
}

static void github_actions_names_the_repository(void **state)
{
    (void)state;
    assert_true(checked(ACTIONS, "{\"repository\":\"org/repo\",\"sub\":\"x\"}"));
    assert_string_equal(repo, "org/repo");
}

static void token_without_a_repository_is_401(void **state)
{
    (void)state;
    assert_status(ACTIONS, "{}", 401);
    assert_status(ACTIONS, "{\"repository\":7}", 401);
    assert_status(ACTIONS, "{\"repository\":\"no-slash\"}", 401);
    assert_status(ACTIONS, "[]", 401);
    assert_status(ACTIONS, "{\"repository\":\"a/b\",\"repository\":\"c/d\"}", 401);
}

static void buildkite_is_looked_up_by_organization_and_pipeline(void **state)
{
    (void)state;
    assert_true(checked(CALLBACK_ISSUER_BUILDKITE,
                        "{\"organization_id\":\"" ORG "\",\"pipeline_id\":\"" PIPE "\"}"));
    assert_string_equal(repo, "org/plain");
}

static void buildkite_cannot_claim_a_repository(void **state)
{
    (void)state;
    assert_status(CALLBACK_ISSUER_BUILDKITE, "{\"repository\":\"org/plain\"}", 401);
}

static void buildkite_without_its_ids_is_401(void **state)
{
    (void)state;
    assert_status(CALLBACK_ISSUER_BUILDKITE, "{\"organization_id\":\"" ORG "\"}", 401);
    assert_status(CALLBACK_ISSUER_BUILDKITE, "{\"pipeline_id\":\"" PIPE "\"}", 401);
}

static void unregistered_pipeline_is_403(void **state)
{
    (void)state;
    const char claims[] = "{\"organization_id\":\"" ORG "\",\"pipeline_id\":\"" ORG "\"}";
    assert_status(CALLBACK_ISSUER_BUILDKITE, claims, 403);
    struct answer v;
    json_auto_t *document = json_loads(claims, JSON_REJECT_DUPLICATES, NULL); /* as jwt.c */
    assert_false(identity_check(STR_LIT(CALLBACK_ISSUER_BUILDKITE), document, NULL, repo, &v));
    assert_int_equal(v.status, 403);
}

static void required_claims_must_match(void **state)
{
    (void)state;
#define STRICT "{\"organization_id\":\"" ORG "\",\"pipeline_id\":\"" PIPE2 "\""
    assert_true(checked(CALLBACK_ISSUER_BUILDKITE,
                        STRICT ",\"build_branch\":\"release\",\"build_number\":7}"));
    assert_string_equal(repo, "org/strict");
    assert_status(CALLBACK_ISSUER_BUILDKITE, STRICT ",\"build_branch\":\"dev\",\"build_number\":7}",
                  403);
    assert_status(CALLBACK_ISSUER_BUILDKITE,
                  STRICT ",\"build_branch\":\"main\",\"build_number\":8}", 403);
    assert_status(CALLBACK_ISSUER_BUILDKITE, STRICT ",\"build_branch\":\"main\"}", 403);
}

static void another_issuer_is_looked_up_by_the_claims_of_its_key(void **state)
{
    (void)state;
    assert_true(checked(GITLAB, "{\"project_path\":\"vendor/ci/oot\",\"ref\":\"x\"}"));
    assert_string_equal(repo, "org/oot");
    assert_true(checked(TWO, "{\"folder\":\"oot\",\"number\":7}"));
    assert_string_equal(repo, "org/seven");
    assert_true(checked(GITLAB, "{\"project_path\":\"vendor/main\",\"ref_protected\":\"true\"}"));
    assert_string_equal(repo, "org/main");
    assert_status(GITLAB, "{\"project_path\":\"vendor/main\",\"ref_protected\":\"false\"}", 403);
}

static void another_issuer_that_is_mapped_cannot_claim_a_repository(void **state)
{
    (void)state;
    assert_status(GITLAB, "{\"repository\":\"org/oot\"}", 401);
    assert_non_null(strstr(answer.text, "lacks the claim project_path"));
    assert_status(GITLAB, "{\"repository\":\"org/oot\",\"project_path\":\"evil/oot\"}", 403);
    assert_non_null(strstr(answer.text, "evil/oot of gitlab is registered for no repository"));
    assert_status(GITLAB, "{\"project_path\":\"\"}", 401);
    assert_status(GITLAB, "{\"project_path\":[\"vendor/ci/oot\"]}", 401);
}

static void two_tokens_never_have_one_key(void **state)
{
    (void)state;
    assert_status(TWO, "{\"folder\":\"\",\"number\":\"oot/7\"}", 401);
    assert_status(TWO, "{\"folder\":\"oot/7\",\"number\":\"\"}", 401);
    assert_status(TWO, "{\"folder\":\"oot/7\",\"number\":\"7\"}", 403);
    char claims[4096];
    snprintf(claims, sizeof(claims), "{\"folder\":\"oot\",\"number\":\"7%02000d\"}", 0);
    assert_status(TWO, claims, 403);
}

static void of_an_issuer_that_is_not_mapped_the_claim_repository_counts(void **state)
{
    (void)state;
    assert_true(checked("https://other.example", "{\"repository\":\"org/repo\"}"));
    assert_string_equal(repo, "org/repo");
    assert_status("https://other.example", "{\"project_path\":\"vendor/ci/oot\"}", 401);
    assert_non_null(strstr(answer.text, "providers file does not map its issuer"));
}

static int ids_status(const char *issuer, const char *claims, int64_t repo_id, int64_t owner_id)
{
    const struct allowlist_entry entry = { .repo_id = repo_id, .owner_id = owner_id };
    answer = (struct answer){ 0 };
    json_auto_t *document = json_loads(claims, JSON_REJECT_DUPLICATES, NULL); /* as jwt.c */
    return identity_ids_check(str_of(issuer), document, &entry, &answer) ? 200 : answer.status;
}

static void a_name_that_was_registered_anew_is_403(void **state)
{
    (void)state;
    const char *claims = "{\"repository_id\":\"71\",\"repository_owner_id\":\"7\"}";
    assert_int_equal(ids_status(ACTIONS, claims, 71, 7), 200);
    assert_int_equal(ids_status(ACTIONS, claims, 72, 7), 403);
    assert_non_null(strstr(answer.text, "repository_id"));
    assert_int_equal(ids_status(ACTIONS, claims, 71, 8), 403);
    assert_non_null(strstr(answer.text, "repository_owner_id"));
    assert_int_equal(ids_status(ACTIONS, claims, 0, 7), 200);
    assert_int_equal(ids_status(ACTIONS, claims, 71, 0), 200);
    assert_int_equal(ids_status(ACTIONS, "{}", 0, 0), 200);
    assert_int_equal(ids_status(ACTIONS, "{}", 71, 0), 403);
    assert_int_equal(ids_status(CALLBACK_ISSUER_BUILDKITE, "{}", 71, 7), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(github_actions_names_the_repository),
        cmocka_unit_test(token_without_a_repository_is_401),
        cmocka_unit_test(buildkite_is_looked_up_by_organization_and_pipeline),
        cmocka_unit_test(buildkite_cannot_claim_a_repository),
        cmocka_unit_test(buildkite_without_its_ids_is_401),
        cmocka_unit_test(unregistered_pipeline_is_403),
        cmocka_unit_test(required_claims_must_match),
        cmocka_unit_test(another_issuer_is_looked_up_by_the_claims_of_its_key),
        cmocka_unit_test(another_issuer_that_is_mapped_cannot_claim_a_repository),
        cmocka_unit_test(two_tokens_never_have_one_key),
        cmocka_unit_test(of_an_issuer_that_is_not_mapped_the_claim_repository_counts),
        cmocka_unit_test(a_name_that_was_registered_anew_is_403),
    };
    return cmocka_run_group_tests(tests, providers_make, providers_drop);
}

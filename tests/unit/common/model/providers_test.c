#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/model/providers.h"

#define ORG  "0191f7a4-1c2d-7e3f-8a4b-5c6d7e8f9a0b"
#define PIPE "018c1234-aaaa-4bbb-8ccc-1234567890ab"
#define KEY  ORG "/" PIPE

#define BUILDKITE  "https://agent.buildkite.com"
#define GITLAB     "https://gitlab.vendor.example"
#define JENKINS    "https://ci.vendor.example/oidc"
/* A provider with one more member. */
#define CI(member) "providers: {ci: {issuer: " GITLAB ", " member "}}\n"

static struct providers *parse(const char *yaml)
{
    struct providers *p = NULL;
    struct why why = { "" };
    if (providers_parse(&p, "p.yml", str_of(yaml), &why))
        fail_msg("refused: %s", why.text);
    return p;
}

/* NULL when it is not registered. */
static const struct provider_pipeline *look(const struct providers *p, const char *issuer,
                                            const char *key)
{
    const struct provider *provider = providers_of(p, str_of(issuer));
    assert_non_null(provider);
    return providers_find(provider, str_of(key));
}

static void a_pipeline_is_found_in_every_form(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "providers:\n  buildkite:\n    repo_map:\n      " KEY ": org/a\n",
        "providers:\n  buildkite:\n    repo_map:\n      " KEY ": {repo: org/a}\n",
        "buildkite:\n  " KEY ": org/a\n",
        "buildkite:\n  " KEY ":\n    repo: org/a\n    required_claims:\n",
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct providers *p = parse(forms[i]);
        assert_int_equal(providers_size(p), 1);
        const struct provider_pipeline *found = look(p, BUILDKITE, KEY);
        assert_non_null(found);
        assert_true(str_is(found->repo, "org/a"));
        assert_int_equal(found->n_claims, 0);
        providers_free(p);
    }
}

static void any_issuer_may_be_mapped(void **state)
{
    (void)state;
    struct providers *p = parse("providers:\n"
                                "  gitlab:\n"
                                "    repo_map:\n" /* before the key: the order is free */
                                "      vendor/ci/oot: org/a\n"
                                "      42: org/b\n"
                                "    key: [project_path]\n"
                                "    issuer: " GITLAB "\n"
                                "  jenkins:\n"
                                "    issuer: " JENKINS "\n"
                                "    key: [folder, job]\n"
                                "    repo_map: {oot/nightly: {repo: org/c}}\n"
                                "buildkite: {" KEY ": org/d}\n");
    assert_int_equal(providers_size(p), 4);
    const struct provider *gitlab = providers_of(p, STR_LIT(GITLAB));
    assert_string_equal(gitlab->name, "gitlab");
    assert_string_equal(gitlab->key[0], "project_path");
    assert_null(gitlab->key[1]);
    assert_string_equal(providers_of(p, STR_LIT(JENKINS))->key[1], "job");
    assert_true(str_is(look(p, GITLAB, "vendor/ci/oot")->repo, "org/a"));
    assert_true(str_is(look(p, GITLAB, "42")->repo, "org/b"));
    assert_true(str_is(look(p, JENKINS, "oot/nightly")->repo, "org/c"));
    assert_true(str_is(look(p, BUILDKITE, KEY)->repo, "org/d"));
    assert_null(look(p, JENKINS, "vendor/ci/oot"));
    assert_null(look(p, GITLAB, "vendor/ci"));
    assert_null(look(p, GITLAB, "Vendor/ci/oot"));
    providers_free(p);
}

static void of_other_issuers_the_claim_repository_counts(void **state)
{
    (void)state;
    struct providers *p = parse("providers: {github: , buildkite: }\n");
    assert_null(providers_of(p, STR_LIT("https://token.actions.githubusercontent.com")));
    assert_null(providers_of(p, STR_LIT(GITLAB)));
    assert_null(providers_of(NULL, STR_LIT(GITLAB)));
    assert_null(look(p, BUILDKITE, KEY));
    assert_null(look(NULL, BUILDKITE, KEY)); /* never its claim */
    providers_free(p);
}

static void the_case_of_ids_is_ignored(void **state)
{
    (void)state;
    struct providers *p =
        parse("buildkite: {0191F7A4-1C2D-7E3F-8A4B-5C6D7E8F9A0B/" PIPE ": org/a}");
    assert_non_null(look(p, BUILDKITE, ORG "/018C1234-AAAA-4BBB-8CCC-1234567890AB"));
    providers_free(p);
}

static void what_is_not_registered_is_not_found(void **state)
{
    (void)state;
    struct providers *p = parse("buildkite: {" KEY ": org/a}");
    const struct provider *buildkite = providers_of(p, STR_LIT(BUILDKITE));
    assert_null(look(p, BUILDKITE, PIPE "/" ORG));
    assert_null(look(p, BUILDKITE, ORG "/"));
    assert_null(look(p, BUILDKITE, ORG "/x"));
    assert_null(providers_find(buildkite, STR_LIT(ORG "/018c1234-aaaa-4bbb-8ccc-1234567890a\0")));
    assert_null(providers_find(buildkite, STR_NONE));
    providers_free(p);
}

static void required_claims_are_kept(void **state)
{
    (void)state;
    struct providers *p = parse("providers:\n  buildkite:\n    repo_map:\n      " KEY ":\n"
                                "        repo: org/a\n"
                                "        required_claims:\n"
                                "          pipeline_slug: [ci, release]\n"
                                "          build_branch: main\n");
    const struct provider_pipeline *found = look(p, BUILDKITE, KEY);
    assert_int_equal(found->n_claims, 2);
    assert_true(str_is(found->claims[0].name, "pipeline_slug"));
    assert_int_equal(found->claims[0].n_values, 2);
    assert_true(str_is(found->claims[0].values[1], "release"));
    assert_true(str_is(found->claims[1].values[0], "main"));
    providers_free(p);
}

static void todays_file_without_a_mapping_is_read(void **state)
{
    (void)state;
    static const char *const empty[] = {
        "",
        "providers:\n",
        "providers:\n"
        "  github:\n"
        "    issuer: https://token.actions.githubusercontent.com\n"
        "    jwks_uri: https://token.actions.githubusercontent.com/.well-known/jwks\n"
        "  buildkite:\n"
        "    issuer: https://agent.buildkite.com\n"
        "    jwks_uri: https://agent.buildkite.com/.well-known/jwks\n"
        "    repo_map:\n"
        "      # nothing yet\n",
    };
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct providers *p = parse(empty[i]);
        assert_int_equal(providers_size(p), 0);
        assert_null(look(p, BUILDKITE, KEY));
        providers_free(p);
    }
}

static void a_fault_names_its_place_and_what_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *begins, *holds;
    } faults[] = {
        { "buildkite:\n  vllm/ci: org/a\n", "p.yml:2:3: ", "two UUIDs" },
        { "buildkite:\n  " ORG ": org/a\n", "p.yml:2:3: ", "two UUIDs" },
        { "buildkite:\n  " KEY ": noslash\n", "p.yml:2:78: ", "accepted is owner/repo" },
        { "buildkite:\n  " KEY ": org/a.git\n", "p.yml:2:78: ", ".git behind it" },
        { "buildkite:\n  " KEY ":\n", "p.yml:2:77: ", "accepted is owner/repo" },
        { "buildkite:\n  " KEY ": [org/a]\n", "p.yml:2:78: ", "a list is not a repository" },
        { "buildkite:\n  " KEY ": {}\n", "p.yml:2:3: ", "has no repo" },
        { "buildkite:\n  " KEY ": {repos: org/a}\n", "p.yml:2:79: ", "accepted are repo and" },
        { "buildkite:\n  " KEY ":\n    repo: org/a\n    required_claims: [x]\n",
          "p.yml:4:22: ", "accepted is a mapping" },
        { "buildkite:\n  " KEY ":\n    repo: org/a\n    required_claims: {x: []}\n",
          "p.yml:4:26: ", "accepted is a text or a list" },
        { "buildkite:\n  " KEY ":\n    repo: org/a\n    required_claims: {x: }\n",
          "p.yml:4:26: ", "accepted is a text or a list" },
        { "buildkite:\n  " KEY ":\n    repo: org/a\n    required_claims: {x: [[y]]}\n",
          "p.yml:4:27: ", "accepted are texts" },
        { "buildkite: {" KEY ": org/a}\nproviders: {buildkite: {repo_map: {" KEY ": org/b}}}\n",
          "p.yml:2:36: ", "the first is at line 1" },
        { "providers: {gitlab: {}}\n", "p.yml:1:13: ", "has no issuer; accepted are issuer, key" },
        { "providers: {gitlab: }\n", "p.yml:1:21: ", "is nothing; accepted is a mapping" },
        { CI("repo_map: {a: org/a}"), "p.yml:1:13: ", "has no key; accepted are issuer, key" },
        { CI("jwks_uri: x"), "p.yml:1:57: ", "accepted are issuer, key, repo_map" },
        { CI("key: project_path"), "p.yml:1:62: ", "accepted is a list of 1 to 4" },
        { CI("key: []"), "p.yml:1:62: ", "accepted is a list of 1 to 4" },
        { CI("key: [a, b, c, d, e]"), "p.yml:1:62: ", "accepted is a list of 1 to 4" },
        { CI("key: [a, [b]]"), "p.yml:1:66: ", "accepted are names of claims" },
        { CI("key: [a, \"\"]"), "p.yml:1:66: ", "accepted are names of claims" },
        { CI("key: [a, b], repo_map: {x: org/a}"), "p.yml:1:81: ", "one value for each claim" },
        { CI("key: [a, b], repo_map: {x/y/z: org/a}"), "p.yml:1:81: ", "one value for each claim" },
        { CI("key: [a, b], repo_map: {/y: org/a}"), "p.yml:1:81: ", "one value for each claim" },
        { CI("key: [a, b], repo_map: {x/: org/a}"), "p.yml:1:81: ", "one value for each claim" },
        { CI("key: [a], repo_map: {x: a}"), "p.yml:1:81: ", "accepted is owner/repo" },
        { "providers: {ci: {key: [a], issuer: }}\n", "p.yml:1:36: ", "accepted is the claim iss" },
        { "providers: {gh: {issuer: https://token.actions.githubusercontent.com}}\n",
          "p.yml:1:26: ", "is the issuer of github" },
        { "providers: {bk: {issuer: " BUILDKITE "}}\n",
          "p.yml:1:26: ", "is the issuer of buildkite" },
        { "providers:\n  a: {issuer: x, key: [a]}\n  b: {issuer: x, key: [b]}\n",
          "p.yml:3:15: ", "is the issuer of a; accepted is one provider an issuer" },
        { "providers: {github: {issuer: https://evil.example}}\n",
          "p.yml:1:30: ", "cannot be changed here" },
        { "providers: {buildkite: {jwks_uri: https://evil.example}}\n",
          "p.yml:1:35: ", "cannot be changed here" },
        { "providers: {github: {repo_map: {}}}\n", "p.yml:1:22: ", "accepted are issuer" },
        { "providers: {buildkite: [x]}\n", "p.yml:1:24: ", "accepted is a mapping" },
        { "providers: [x]\n", "p.yml:1:12: ", "accepted is a mapping" },
        { "providers: {buildkite: {repo_map: [x]}}\n", "p.yml:1:35: ", "accepted is a mapping" },
        { "issuers: {}\n", "p.yml:1:1: ", "accepted are providers and buildkite" },
        { "- x\n", "p.yml:1:1: ", "a list where a mapping is expected" },
        { "buildkite: [\n", "p.yml:2:1: ", "not YAML" },
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct providers *p = NULL;
        struct why why = { "" };
        if (providers_parse(&p, "p.yml", str_of(faults[i].yaml), &why) != ERR_REFUSE)
            fail_msg("was taken: %s", faults[i].yaml);
        assert_null(p);
        if (!str_starts(str_of(why.text), faults[i].begins) || !strstr(why.text, faults[i].holds))
            fail_msg("for:\n%s\nthe reason is \"%s\", wanted \"%s … %s\"", faults[i].yaml, why.text,
                     faults[i].begins, faults[i].holds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_found_in_every_form),
        cmocka_unit_test(any_issuer_may_be_mapped),
        cmocka_unit_test(of_other_issuers_the_claim_repository_counts),
        cmocka_unit_test(the_case_of_ids_is_ignored),
        cmocka_unit_test(what_is_not_registered_is_not_found),
        cmocka_unit_test(required_claims_are_kept),
        cmocka_unit_test(todays_file_without_a_mapping_is_read),
        cmocka_unit_test(a_fault_names_its_place_and_what_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

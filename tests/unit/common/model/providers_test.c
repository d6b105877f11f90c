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

static struct providers *parse(const char *yaml)
{
    struct providers *p = NULL;
    struct why why = { "" };
    if (providers_parse(&p, "p.yml", str_of(yaml), &why))
        fail_msg("refused: %s", why.text);
    return p;
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
        const struct provider_pipeline *found = providers_find(p, STR_LIT(ORG), STR_LIT(PIPE));
        assert_non_null(found);
        assert_true(str_is(found->repo, "org/a"));
        assert_true(str_is(found->organization_id, ORG));
        assert_true(str_is(found->pipeline_id, PIPE));
        assert_int_equal(found->n_claims, 0);
        providers_free(p);
    }
}

static void the_case_of_ids_is_ignored(void **state)
{
    (void)state;
    struct providers *p =
        parse("buildkite: {0191F7A4-1C2D-7E3F-8A4B-5C6D7E8F9A0B/" PIPE ": org/a}");
    assert_non_null(
        providers_find(p, STR_LIT(ORG), STR_LIT("018C1234-AAAA-4BBB-8CCC-1234567890AB")));
    providers_free(p);
}

static void what_is_not_registered_is_not_found(void **state)
{
    (void)state;
    struct providers *p = parse("buildkite: {" KEY ": org/a}");
    assert_null(providers_find(p, STR_LIT(PIPE), STR_LIT(ORG)));
    assert_null(providers_find(p, STR_LIT(ORG), STR_NONE));
    assert_null(providers_find(p, STR_LIT(ORG), STR_LIT("x")));
    assert_null(providers_find(p, STR_LIT(ORG), STR_LIT("018c1234-aaaa-4bbb-8ccc-1234567890a\0")));
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
    const struct provider_pipeline *found = providers_find(p, STR_LIT(ORG), STR_LIT(PIPE));
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
        assert_null(providers_find(p, STR_LIT(ORG), STR_LIT(PIPE)));
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
        { "providers: {gitlab: {}}\n", "p.yml:1:13: ", "accepted are github and buildkite" },
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
        cmocka_unit_test(the_case_of_ids_is_ignored),
        cmocka_unit_test(what_is_not_registered_is_not_found),
        cmocka_unit_test(required_claims_are_kept),
        cmocka_unit_test(todays_file_without_a_mapping_is_read),
        cmocka_unit_test(a_fault_names_its_place_and_what_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

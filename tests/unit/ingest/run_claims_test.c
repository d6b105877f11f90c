/* A job of GitHub Actions reports on its own run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <jansson.h>

#include "ingest/identity.h"

static struct answer answer;

/* Whether a report on this run and attempt is taken from the owner of a token with these claims. */
static bool taken(const char *issuer, const char *claims, const char *run_id, const char *attempt)
{
    struct run_claims run;
    struct callback fields = { 0 };
    json_auto_t *document = json_loads(claims, 0, NULL);
    run_claims_read(str_of(issuer), document, &run);
    str_copy(fields.run_id, sizeof(fields.run_id), str_of(run_id));
    str_copy(fields.run_attempt, sizeof(fields.run_attempt), str_of(attempt));
    answer = (struct answer){ 0 };
    return run_claims_check(&run, &fields, &answer);
}

static void assert_403(const char *claims, const char *run_id, const char *attempt,
                       const char *text)
{
    assert_false(taken(CALLBACK_ISSUER_ACTIONS, claims, run_id, attempt));
    assert_int_equal(answer.status, 403);
    if (!strstr(answer.text, text))
        fail_msg("\"%s\" does not say \"%s\"", answer.text, text);
}

static void the_run_and_attempt_of_the_token_are_taken(void **state)
{
    (void)state;
    assert_true(
        taken(CALLBACK_ISSUER_ACTIONS, "{\"run_id\":\"811\",\"run_attempt\":\"2\"}", "811", "2"));
}

static void another_run_is_403_and_the_text_says_which_is_accepted(void **state)
{
    (void)state;
    const char claims[] = "{\"run_id\":\"811\",\"run_attempt\":\"2\"}";
    assert_403(claims, "812", "2",
               "workflow.run_id differs from the claim run_id of the token; "
               "accepted is 811");
    assert_403(claims, "811", "1",
               "workflow.run_attempt differs from the claim run_attempt of the "
               "token; accepted is 2");
    assert_403(claims, "0811", "2", "workflow.run_id");
    assert_403(claims, "811-1", "2", "workflow.run_id");
    assert_403(claims, "811", "02", "workflow.run_attempt");
}

static void a_token_without_the_claims_proves_no_run(void **state)
{
    (void)state;
    assert_403("{\"run_attempt\":\"1\"}", "811", "1", "the token has no claim run_id");
    assert_403("{\"run_id\":\"811\"}", "811", "1", "the token has no claim run_attempt");
    assert_403("{\"run_id\":811,\"run_attempt\":\"1\"}", "811", "1", "no claim run_id");
    assert_403("[]", "811", "1", "no claim run_id");
}

static void tokens_of_other_cis_are_bound_to_no_run(void **state)
{
    (void)state;
    struct run_claims run;
    assert_true(taken("https://agent.buildkite.com", "{}", "018e5c1a-7b1f", "3"));
    assert_true(taken("https://gitlab.example", "{\"run_id\":\"1\"}", "51", "1"));
    json_auto_t *document = json_loads("{\"run_id\":\"1\",\"run_attempt\":\"7\"}", 0, NULL);
    run_claims_read(STR_LIT("https://gitlab.example"), document, &run);
    assert_string_equal(run.run_attempt, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_and_attempt_of_the_token_are_taken),
        cmocka_unit_test(another_run_is_403_and_the_text_says_which_is_accepted),
        cmocka_unit_test(a_token_without_the_claims_proves_no_run),
        cmocka_unit_test(tokens_of_other_cis_are_bound_to_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

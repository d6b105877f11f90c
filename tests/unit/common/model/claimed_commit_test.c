/* The commit that a self-report claims to be of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "common/model/callback.h"

#define WORKFLOW "\"status\":\"completed\",\"name\":\"n\",\"run_id\":1"

static struct callback parse(const char *body)
{
    struct callback c;
    struct why why = { "" };
    if (callback_parse(str_of(body), STR_NONE, &c, &why))
        fail_msg("refused: %s\n%s", why.text, body);
    return c;
}

static void assert_claims(const char *members, const char *delivery, const char *commit)
{
    char body[1000];
    snprintf(body, sizeof(body),
             "{\"event_type\":\"nightly\",\"delivery_id\":\"%s\",%s\"workflow\":{" WORKFLOW "}}",
             delivery, members);
    struct callback c = parse(body);
    assert_string_equal(callback_commit(&c), commit);
    callback_clear(&c);
}

#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40 "BBBBBBBBBBbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C64 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static void a_self_report_claims_its_commit_by_the_first_that_is_one(void **state)
{
    (void)state;
    assert_claims("\"payload\":{\"head_sha\":\"" A40 "\",\"after\":\"" B40 "\"},"
                  "\"pytorch_head_sha\":\"" C64 "\",",
                  "n-1", A40);
    assert_claims("\"pytorch_head_sha\":\"" C64 "\",\"payload\":{\"after\":\"" B40 "\"},", A40,
                  B40);
    assert_claims("\"pytorch_head_sha\":\"" C64 "\",", A40, C64);
    assert_claims("", A40, A40);
    assert_claims("", C64, C64);
    assert_claims("", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "");
    /* what is no commit is passed over, whatever it is */
    static const char *const none[] = { "\"abcdef1\"",
                                        "\"main\"",
                                        "\"\"",
                                        "null",
                                        "7",
                                        "{}",
                                        "[]",
                                        "\"" A40 "a\"",
                                        "\"" A40 " \"",
                                        "\"gaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"" };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        char members[400];
        snprintf(members, sizeof(members), "\"payload\":{\"head_sha\":%s,\"after\":\"" B40 "\"},",
                 none[i]);
        assert_claims(members, "n-1", B40);
        snprintf(members, sizeof(members), "\"payload\":{\"after\":%s},\"pytorch_head_sha\":%s,",
                 none[i], none[i]);
        assert_claims(members, "n-1", "");
        assert_claims(members, "abcdef1", ""); /* an abbreviation names no commit for good */
    }
    assert_claims("\"payload\":\"" A40 "\",", "n-1", "");
    struct callback c = parse("{\"event_type\":\"pull_request\","
                              "\"delivery_id\":\"n-1\""
                              ",\"payload\":{\"after\":\"" A40 "\"},\"workflow\":{" WORKFLOW "}}");
    assert_string_equal(callback_commit(&c), ""); /* of a dispatch it is proven elsewhere */
    callback_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_self_report_claims_its_commit_by_the_first_that_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

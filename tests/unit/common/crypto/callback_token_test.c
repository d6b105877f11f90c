#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/crypto/callback_token.h"
#include "common/crypto/jwt.h"
#include "forge.h"

enum { NOW = 1800000000, DAY = 86400 };
#define SECRET_1 "first-secret-0123456789abcdefghij"
#define SECRET_2 "second-secret-0123456789abcdefghi"

static const struct callback_token TOKEN = {
    .delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    .repo = "Org/Backend",
    .pr = 171269,
    .head_sha = "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
    .dispatched_ms = 1799999999123,
    .issued_s = NOW,
};

static struct callback_keys *keys_of(const char *spec)
{
    struct callback_keys *keys = NULL;
    struct why why;
    assert_int_equal(callback_keys_new(&keys, str_of(spec), &why), OK);
    return keys;
}

static void keys_clear(struct callback_keys **keys)
{
    callback_keys_free(*keys);
}

static char *signed_by(const char *spec, const struct callback_token *token)
{
    struct callback_keys *CLEANUP(keys_clear) keys = keys_of(spec);
    char *text = NULL;
    struct why why;
    assert_int_equal(callback_token_sign(keys, token, &text, &why), OK);
    return text;
}

static enum err verified_by(const char *spec, const char *text, int64_t now_s,
                            struct callback_token *ret)
{
    struct callback_keys *CLEANUP(keys_clear) keys = keys_of(spec);
    struct why why;
    return callback_token_verify(keys, str_of(text), now_s, ret, &why);
}

static void what_was_signed_comes_back(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) text = signed_by("k1:" SECRET_1, &TOKEN);
    struct callback_token t;
    assert_int_equal(verified_by("k1:" SECRET_1, text, NOW, &t), OK);
    assert_string_equal(t.delivery, TOKEN.delivery);
    assert_string_equal(t.repo, TOKEN.repo);
    assert_string_equal(t.head_sha, TOKEN.head_sha);
    assert_int_equal(t.pr, TOKEN.pr);
    assert_true(t.dispatched_ms == TOKEN.dispatched_ms);
    assert_int_equal(t.issued_s, NOW);
    assert_int_equal(t.expires_s, NOW + 35 * DAY);
}

static void the_claims_have_the_documented_names(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) text = signed_by("k1:" SECRET_1, &TOKEN);
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct why why;
    assert_int_equal(jwt_read(&jwt, str_of(text), &why), OK);
    assert_true(str_is(jwt_header(jwt, "kid"), "k1"));
    assert_true(str_is(jwt_header(jwt, "alg"), "HS256"));
    assert_true(str_is(jwt_header(jwt, "typ"), "JWT"));
    assert_int_equal(jwt_verify_hs256(jwt, STR_LIT(SECRET_1), NOW, 0, &why), OK);
    char *CLEANUP(mem_free_char) claims = json_dumps(jwt_claims(jwt), JSON_COMPACT);
    assert_string_equal(claims,
                        "{\"delivery_id\":\"72d3162e-cc78-11e3-81ab-4c9367dc0958\","
                        "\"repo\":\"Org/Backend\",\"pr_number\":171269,"
                        "\"head_sha\":\"6113728f27ae82c7b1a177c8d03f9e96e0adf246\","
                        "\"dispatched_at\":1799999999123,\"iat\":1800000000,\"exp\":1803024000}");
}

static void it_lives_35_days(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) text = signed_by("k1:" SECRET_1, &TOKEN);
    struct callback_token t;
    assert_int_equal(verified_by("k1:" SECRET_1, text, NOW + 35 * DAY - 1, &t), OK);
    assert_int_equal(verified_by("k1:" SECRET_1, text, NOW + 35 * DAY + 60, &t), ERR_REFUSE);
    struct callback_token brief = TOKEN;
    brief.expires_s = NOW + 10;
    char *CLEANUP(mem_free_char) other = signed_by("k1:" SECRET_1, &brief);
    assert_int_equal(verified_by("k1:" SECRET_1, other, NOW + 71, &t), ERR_REFUSE);
}

static void rotation_first_signs_all_verify(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) old = signed_by("k1:" SECRET_1, &TOKEN);
    char *CLEANUP(mem_free_char) new = signed_by("k2:" SECRET_2 ",k1:" SECRET_1, &TOKEN);
    struct callback_token t;
    assert_int_equal(verified_by("k2:" SECRET_2 ", k1:" SECRET_1, old, NOW, &t), OK);
    assert_int_equal(verified_by("k2:" SECRET_2, new, NOW, &t), OK);
    assert_int_equal(verified_by("k1:" SECRET_1, new, NOW, &t), ERR_REFUSE); /* kid unknown */
    assert_int_equal(verified_by("k2:" SECRET_2, old, NOW, &t), ERR_REFUSE);
    assert_int_equal(verified_by("k2:" SECRET_1, new, NOW, &t), ERR_REFUSE); /* wrong secret */
}

static void forged_and_broken_tokens_are_refused(void **state)
{
    (void)state;
    static const char claims[] =
        "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"pr_number\":1,\"head_sha\":\"\","
        "\"dispatched_at\":1,\"iat\":1,\"exp\":1900000000}";
    struct {
        const char *header, *claims;
        struct str secret;
        enum err err;
    } cases[] = {
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}", claims, STR_LIT(SECRET_1), OK },
        { "{\"alg\":\"none\",\"kid\":\"k1\"}", claims, STR_NONE, ERR_REFUSE },
        { "{\"alg\":\"HS256\"}", claims, STR_LIT(SECRET_1), ERR_REFUSE },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}", claims, STR_LIT(SECRET_2), ERR_REFUSE },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}", "{\"exp\":1900000000}", STR_LIT(SECRET_1),
          ERR_REFUSE },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}",
          "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"pr_number\":\"1\",\"head_sha\":\"\","
          "\"dispatched_at\":1,\"iat\":1,\"exp\":1900000000}",
          STR_LIT(SECRET_1), ERR_REFUSE },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}",
          "{\"delivery_id\":\"\",\"repo\":\"o/r\",\"pr_number\":1,\"head_sha\":\"\","
          "\"dispatched_at\":1,\"iat\":1,\"exp\":1900000000}",
          STR_LIT(SECRET_1), ERR_REFUSE },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}",
          "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"pr_number\":-1,\"head_sha\":\"\","
          "\"dispatched_at\":1,\"iat\":1,\"exp\":1900000000}",
          STR_LIT(SECRET_1), ERR_REFUSE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *CLEANUP(mem_free_char) text =
            forge(cases[i].header, cases[i].claims, cases[i].secret);
        struct callback_token t;
        assert_int_equal(verified_by("k1:" SECRET_1, text, NOW, &t), cases[i].err);
    }
}

static void bad_key_specs_are_refused_and_never_quote_a_secret(void **state)
{
    (void)state;
    struct {
        const char *spec, *reason;
    } cases[] = {
        { "", "no key" },
        { SECRET_1, "key 1 is not kid:secret" },
        { "k1:short-secret", "at least 32" },
        { ":" SECRET_1, "kid of key 1" },
        { "k 1:" SECRET_1, "kid of key 1" },
        { "k1:" SECRET_1 ",k1:" SECRET_2, "twice" },
        { "k1:" SECRET_1 ",,k2:" SECRET_2, "key 2 is not" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct callback_keys *keys = NULL;
        struct why why = { "" };
        assert_int_equal(callback_keys_new(&keys, str_of(cases[i].spec), &why), ERR_REFUSE);
        assert_null(keys);
        if (!strstr(why.text, cases[i].reason))
            fail_msg("\"%s\" does not say \"%s\"", why.text, cases[i].reason);
        assert_null(strstr(why.text, "secret-"));
        assert_null(strstr(why.text, "short-"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_signed_comes_back),
        cmocka_unit_test(the_claims_have_the_documented_names),
        cmocka_unit_test(it_lives_35_days),
        cmocka_unit_test(rotation_first_signs_all_verify),
        cmocka_unit_test(forged_and_broken_tokens_are_refused),
        cmocka_unit_test(bad_key_specs_are_refused_and_never_quote_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

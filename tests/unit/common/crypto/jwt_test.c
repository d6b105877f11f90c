#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/crypto/jwt.h"
#include "forge.h"
#include "test_keys.h"

enum { NOW = 1800000000, LEEWAY = 60 };
static const char AUDIENCE[] = "pytorch-cross-repo-ci-relay";
#define SECRET STR_LIT("0123456789abcdef0123456789abcdef")

static struct {
    struct jwt_key *a, *b;
    struct jwks *jwks_a; /* the public half of a as "ka" */
    char *jwks_text;
} f;

static int setup(void **state)
{
    (void)state;
    struct why why;
    assert_int_equal(jwt_key_new(&f.a, str_of(KEY_A_PKCS8), &why), OK);
    assert_int_equal(jwt_key_new(&f.b, str_of(KEY_B), &why), OK);
    assert_int_equal(jwt_key_jwks(f.a, STR_LIT("ka"), &f.jwks_text, &why), OK);
    assert_int_equal(jwks_parse(&f.jwks_a, str_of(f.jwks_text), &why), OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    jwt_key_free(f.a);
    jwt_key_free(f.b);
    jwks_free(f.jwks_a);
    free(f.jwks_text);
    return 0;
}

static char *rs256(const struct jwt_key *key, struct str kid, const char *claims)
{
    char *token;
    struct why why;
    assert_int_equal(jwt_sign_rs256(key, kid, str_of(claims), &token, &why), OK);
    return token;
}

static enum err verify_by(struct str token, const struct jwks *set, const char *audience,
                          int64_t now_s, struct why *why)
{
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    enum err err = jwt_read(&jwt, token, why);
    return err ? err : jwt_verify_rs256(jwt, set, audience, now_s, LEEWAY, why);
}

static enum err verify(const char *token, struct why *why)
{
    return verify_by(str_of(token), f.jwks_a, AUDIENCE, NOW, why);
}

static enum err verify_hs256(struct str token, struct str secret, int64_t now_s, struct why *why)
{
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    enum err err = jwt_read(&jwt, token, why);
    return err ? err : jwt_verify_hs256(jwt, secret, now_s, LEEWAY, why);
}

/* claims signed by a as ka; reason NULL: accepted. */
static void checked(const char *claims, const char *reason)
{
    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_LIT("ka"), claims);
    struct why why = { "" };
    enum err err = verify(token, &why);
    if (!reason) {
        assert_int_equal(err, OK);
        return;
    }
    assert_int_equal(err, ERR_REFUSE);
    if (!strstr(why.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
}

static void claims_come_back_as_they_were_signed(void **state)
{
    (void)state;
    const char *claims = "{ \"aud\":\"pytorch-cross-repo-ci-relay\", \"exp\":1800000001}";
    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_LIT("ka"), claims);
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct why why;
    assert_int_equal(jwt_read(&jwt, str_of(token), &why), OK);
    assert_int_equal(jwt_verify_rs256(jwt, f.jwks_a, AUDIENCE, NOW, 0, &why), OK);
    char *CLEANUP(mem_free_char) back = json_dumps(jwt_claims(jwt), 0);
    assert_string_equal(back, "{\"aud\": \"pytorch-cross-repo-ci-relay\", \"exp\": 1800000001}");
}

#define AUD "\"aud\":\"pytorch-cross-repo-ci-relay\""

static void times_are_checked_with_the_leeway(void **state)
{
    (void)state;
    checked("{" AUD ",\"exp\":1800000001}", NULL);
    checked("{" AUD ",\"exp\":1799999941}", NULL); /* 59 s over */
    checked("{" AUD ",\"exp\":1799999940}", "expired 60 s ago");
    checked("{" AUD ",\"exp\":1800000300.5,\"nbf\":1800000060}", NULL);
    checked("{" AUD ",\"exp\":1800000300,\"nbf\":1800000061}", "valid only in 61 s");
    checked("{" AUD ",\"exp\":1800000300,\"iat\":1800000060}", NULL);
    checked("{" AUD ",\"exp\":1800000300,\"iat\":1800000061}", "in the future");
    checked("{" AUD "}", "no exp");
    checked("{" AUD ",\"exp\":\"1800000300\"}", "not a number");
    checked("{" AUD ",\"exp\":1800000300,\"nbf\":null}", "not a number");
}

static void audience_is_a_string_or_a_list(void **state)
{
    (void)state;
    checked("{\"aud\":[\"x\",\"pytorch-cross-repo-ci-relay\"],\"exp\":1800000300}", NULL);
    checked("{\"aud\":\"sigstore\",\"exp\":1800000300}", "audience");
    checked("{\"aud\":[],\"exp\":1800000300}", "audience");
    checked("{\"aud\":[\"pytorch-cross-repo-ci-relay2\",1],\"exp\":1800000300}", "audience");
    checked("{\"aud\":{\"pytorch-cross-repo-ci-relay\":1},\"exp\":1800000300}", "audience");
    checked("{\"exp\":1800000300}", "audience");
}

static void claims_that_two_parsers_read_differently_are_refused(void **state)
{
    (void)state;
    checked("{" AUD ",\"exp\":1800000300,\"repository\":\"a/b\",\"repository\":\"c/d\"}",
            "not a JSON object");
    checked("{" AUD ",\"exp\":1800000300,\"repository\":\"a/b\\u0000c\"}", "not a JSON object");
    checked("[1]", "not a JSON object");
    checked("{" AUD ",\"exp\":1800000300} trailing", "not a JSON object");
}

#define GOOD_CLAIMS "{" AUD ",\"exp\":1800000300}"

static void refused(char *token, const char *reason)
{
    struct why why = { "" };
    assert_int_equal(verify(token, &why), ERR_REFUSE);
    if (!strstr(why.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
    free(token);
}

static void alg_none_is_refused(void **state)
{
    (void)state;
    refused(forge("{\"alg\":\"none\",\"kid\":\"ka\"}", GOOD_CLAIMS, STR_NONE), "algorithm is none");
    refused(forge("{\"alg\":\"None\",\"kid\":\"ka\"}", GOOD_CLAIMS, STR_NONE), "compact JWS");
    refused(forge("{\"kid\":\"ka\"}", GOOD_CLAIMS, STR_NONE), "compact JWS");
    refused(forge("{\"alg\":\"RS256\",\"kid\":\"ka\"}", GOOD_CLAIMS, STR_NONE), "");
}

/* The public key, which everybody has, used as an HMAC secret. */
static void key_confusion_is_refused(void **state)
{
    (void)state;
    struct str public_text = str_of(f.jwks_text);
    refused(forge("{\"alg\":\"HS256\",\"kid\":\"ka\"}", GOOD_CLAIMS, public_text),
            "algorithm is HS256; only RS256");
    refused(forge("{\"alg\":\"RS256\",\"kid\":\"ka\"}", GOOD_CLAIMS, public_text), "signature");

    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_LIT("ka"), GOOD_CLAIMS);
    struct why why;
    assert_int_equal(verify_hs256(str_of(token), public_text, NOW, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "algorithm is RS256; only HS256"));
}

static void other_algorithms_of_the_same_key_are_refused(void **state)
{
    (void)state;
    refused(forge("{\"alg\":\"RS512\",\"kid\":\"ka\"}", GOOD_CLAIMS, SECRET), "RS512");
    refused(forge("{\"alg\":\"PS256\",\"kid\":\"ka\"}", GOOD_CLAIMS, SECRET), "PS256");
}

static void critical_extensions_are_refused(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) token =
        forge("{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}", GOOD_CLAIMS, SECRET);
    struct why why;
    assert_int_equal(verify_hs256(str_of(token), SECRET, NOW, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "crit"));
    char *CLEANUP(mem_free_char) plain = forge("{\"alg\":\"HS256\"}", GOOD_CLAIMS, SECRET);
    assert_int_equal(verify_hs256(str_of(plain), SECRET, NOW, &why), OK);
}

static void a_changed_token_is_refused(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_LIT("ka"), GOOD_CLAIMS);
    struct why why;
    size_t len = strlen(token);
    for (size_t i = 0; i < len - 1; i++) { /* the last digit has bits that mean nothing */
        char before = token[i];
        token[i] = before == 'A' ? 'B' : 'A';
        assert_int_equal(verify(token, &why), ERR_REFUSE);
        token[i] = before;
    }
    assert_int_equal(verify(token, &why), OK);
}

static void the_key_is_chosen_by_kid(void **state)
{
    (void)state;
    refused(rs256(f.b, STR_LIT("ka"), GOOD_CLAIMS), "signature is wrong");
    refused(rs256(f.b, STR_LIT("kb"), GOOD_CLAIMS), "kid kb");

    char *CLEANUP(mem_free_char) b_text = NULL;
    struct why why;
    assert_int_equal(jwt_key_jwks(f.b, STR_LIT("kb"), &b_text, &why), OK);
    struct buf CLEANUP(buf_clear) both; /* {"keys":[A]} and {"keys":[B]} → {"keys":[A,B]} */
    buf_init(&both, 1 << 16);
    buf_printf(&both, "%.*s,%s", (int)strlen(f.jwks_text) - 2, f.jwks_text,
               b_text + strlen("{\"keys\":["));
    struct jwks *set = NULL;
    assert_int_equal(jwks_parse(&set, buf_str(&both), &why), OK);
    struct {
        const struct jwt_key *key;
        struct str kid;
        enum err err;
    } cases[] = {
        { f.a, STR_LIT("ka"), OK },         { f.b, STR_LIT("kb"), OK },
        { f.a, STR_LIT("kb"), ERR_REFUSE }, { f.b, STR_LIT("ka"), ERR_REFUSE },
        { f.a, STR_NONE, ERR_REFUSE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *CLEANUP(mem_free_char) token = rs256(cases[i].key, cases[i].kid, GOOD_CLAIMS);
        assert_int_equal(verify_by(str_of(token), set, AUDIENCE, NOW, &why), cases[i].err);
    }
    jwks_free(set);
}

static void without_a_kid_a_set_of_one_key_is_enough(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_NONE, GOOD_CLAIMS);
    struct why why;
    assert_int_equal(verify(token, &why), OK);
    refused(rs256(f.b, STR_NONE, GOOD_CLAIMS), "signature is wrong");
}

static void *verify_often(void *token)
{
    size_t good = 0;
    for (int i = 0; i < 50; i++) {
        struct why why;
        if (!verify(token, &why))
            good++;
    }
    return good == 50 ? token : NULL;
}

/* TSan looks on. */
static void threads_may_share_a_set(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    char *CLEANUP(mem_free_char) token = rs256(f.a, STR_LIT("ka"), GOOD_CLAIMS);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, verify_often, token);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, token);
    }
}

static void peek_shows_the_header_and_the_issuer(void **state)
{
    (void)state;
    char *CLEANUP(mem_free_char) token =
        rs256(f.a, STR_LIT("ka"), "{\"iss\":\"https://agent.buildkite.com\"}");
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct why why;
    assert_int_equal(jwt_read(&jwt, str_of(token), &why), OK);
    assert_true(str_is(jwt_header(jwt, "alg"), "RS256"));
    assert_true(str_is(jwt_header(jwt, "kid"), "ka"));
    assert_true(str_is(jwt_claim(jwt, "iss"), "https://agent.buildkite.com"));
    assert_null(jwt_header(jwt, "crit").ptr);
}

/* They are compared with what we know, and written into logs. */
static void names_that_are_too_long_are_refused(void **state)
{
    (void)state;
    char name[300] = "", text[400];
    struct why why;
    struct jwt *jwt = NULL;
    static const char *const heads[] = { "{\"alg\":\"%s\"}", "{\"alg\":\"RS256\",\"kid\":\"%s\"}",
                                         "{\"iss\":\"%s\"}" };
    memset(name, 'x', 256);
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), i == 0 ? heads[0] : i == 1 ? heads[1] : heads[2], name);
        char *CLEANUP(mem_free_char) token =
            i < 2 ? forge(text, "{}", SECRET) : forge("{\"alg\":\"RS256\"}", text, SECRET);
        assert_int_equal(jwt_read(&jwt, str_of(token), &why), ERR_REFUSE);
    }
    assert_non_null(strstr(why.text, "too long"));
    name[255] = '\0';
    snprintf(text, sizeof(text), "{\"iss\":\"%s\"}", name);
    char *CLEANUP(mem_free_char) token = forge("{\"alg\":\"RS256\"}", text, SECRET);
    assert_int_equal(jwt_read(&jwt, str_of(token), &why), OK);
    jwt_free(jwt);
}

/* One string of bytes for each secret and text: the same as another implementation signs. */
static void hs256_is_signed_as_rfc7515_says(void **state)
{
    (void)state;
    for (size_t n = 0; n < 8; n++) { /* lengths that leave 0, 1 and 2 bytes for the last digits */
        char claims[64], *CLEANUP(mem_free_char) token = NULL;
        struct why why;
        snprintf(claims, sizeof(claims), "{\"exp\":1800000001,\"n\":\"%.*s\"}", (int)n,
                 "~~~\x7f???");
        assert_int_equal(jwt_sign_hs256(SECRET, STR_LIT("k1"), str_of(claims), &token, &why), OK);
        char *CLEANUP(mem_free_char) other =
            forge("{\"alg\":\"HS256\",\"kid\":\"k1\",\"typ\":\"JWT\"}", claims, SECRET);
        assert_string_equal(token, other);
        assert_int_equal(verify_hs256(str_of(token), SECRET, NOW, &why), OK);
    }
}

static void claims_that_no_token_holds_are_not_signed(void **state)
{
    (void)state;
    char *token = NULL, *CLEANUP(mem_free_char) claims = mem_alloc(20001, 1);
    struct why why;
    memset(claims, ' ', 20000);
    assert_int_equal(jwt_sign_hs256(SECRET, STR_LIT("k1"), str_of(claims), &token, &why),
                     ERR_REFUSE);
    assert_null(token);
}

static void garbage_is_refused(void **state)
{
    (void)state;
    static const char *const tokens[] = {
        "", ".", "..", "...", "a.b.c", "eyJhbGciOiJSUzI1NiJ9..", "eyJhbGciOiJSUzI1NiJ9",
        "bm90IGpzb24.e30.AAAA", "eyJhbGciOiJSUzI1NiJ9.e30.AAAA.AAAA",
        "eyJhbGciOiJSUzI1NiJ9.e30.AAAA.",
        /* cjose aborts on these */
        "eyJhbGciOiJSUzI1NiJ9.e30.A", "eyJhbGciOiJSUzI1NiJ9.A.AAAA",
        "eyJhbGciOiJSUzI1NiJ9.e3A=0.AAAA", "eyJhbGciOiJSUzI1NiJ9.e\xcb\xb0\xab=.AAAA"
    };
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        refused(mem_dup(tokens[i]), "");
    struct why why;
    struct jwt *jwt = NULL;
    assert_int_equal(jwt_read(&jwt, STR_NONE, &why), ERR_REFUSE);
    char *CLEANUP(mem_free_char) huge = mem_alloc(20001, 1);
    memset(huge, 'A', 20000);
    assert_int_equal(jwt_read(&jwt, str_of(huge), &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "20000 bytes"));
}

#define RFC_PAYLOAD                                                                                \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"     \
    "cnVlfQ"

static void rfc7515_appendix_a1_verifies(void **state)
{
    (void)state;
    static const unsigned char secret[] = { 3,   35,  53,  75,  43,  15,  165, 188, 131, 126, 6,
                                            101, 119, 123, 166, 143, 90,  179, 40,  230, 240, 84,
                                            201, 40,  169, 15,  132, 178, 210, 80,  46,  191, 211,
                                            251, 90,  146, 210, 6,   71,  239, 150, 138, 180, 195,
                                            119, 98,  61,  34,  61,  46,  33,  114, 5,   46,  79,
                                            8,   192, 205, 154, 245, 103, 208, 128, 163 };
    struct str token = STR_LIT("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." RFC_PAYLOAD
                               ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    struct str key = { (const char *)secret, sizeof(secret) };
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct why why;
    assert_int_equal(jwt_read(&jwt, token, &why), OK);
    assert_int_equal(jwt_verify_hs256(jwt, key, 1300819379, 0, &why), OK);
    assert_true(str_is(jwt_claim(jwt, "iss"), "joe"));
}

static void rfc7515_appendix_a2_verifies(void **state)
{
    (void)state;
    struct str json =
        STR_LIT("{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\""
                "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPM"
                "EzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"
                "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3"
                "qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9g"
                "b54h4FRWyuXpoQ\"}]}");
    struct str token = STR_LIT(
        "eyJhbGciOiJSUzI1NiJ9." RFC_PAYLOAD
        ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2"
        "Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQ"
        "BMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6Ie"
        "YI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
    struct jwks *set = NULL;
    struct why why = { "" };
    assert_int_equal(jwks_parse(&set, json, &why), OK);
    assert_int_equal(verify_by(token, set, "joe", 1300819379, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "audience")); /* all but the audience, which it has not */
    jwks_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_come_back_as_they_were_signed),
        cmocka_unit_test(times_are_checked_with_the_leeway),
        cmocka_unit_test(audience_is_a_string_or_a_list),
        cmocka_unit_test(claims_that_two_parsers_read_differently_are_refused),
        cmocka_unit_test(alg_none_is_refused),
        cmocka_unit_test(key_confusion_is_refused),
        cmocka_unit_test(other_algorithms_of_the_same_key_are_refused),
        cmocka_unit_test(critical_extensions_are_refused),
        cmocka_unit_test(a_changed_token_is_refused),
        cmocka_unit_test(the_key_is_chosen_by_kid),
        cmocka_unit_test(without_a_kid_a_set_of_one_key_is_enough),
        cmocka_unit_test(threads_may_share_a_set),
        cmocka_unit_test(peek_shows_the_header_and_the_issuer),
        cmocka_unit_test(names_that_are_too_long_are_refused),
        cmocka_unit_test(hs256_is_signed_as_rfc7515_says),
        cmocka_unit_test(claims_that_no_token_holds_are_not_signed),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(rfc7515_appendix_a1_verifies),
        cmocka_unit_test(rfc7515_appendix_a2_verifies),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/crypto/jwt.h"
#include "test_keys.h"

/* The document of key A with kid "ka" and "…" put in front of its members. */
static struct jwks *parse_with(const char *members, struct why *why)
{
    struct jwt_key *key;
    char *CLEANUP(mem_free_char) text = NULL;
    assert_int_equal(jwt_key_new(&key, str_of(KEY_A_PKCS8), why), OK);
    assert_int_equal(jwt_key_jwks(key, STR_LIT("ka"), &text, why), OK);
    jwt_key_free(key);
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 1 << 16);
    buf_printf(&b, "{\"keys\":[%s,%s", members, text + strlen("{\"keys\":["));
    struct jwks *set = NULL;
    enum err err = jwks_parse(&set, buf_str(&b), why);
    assert_int_equal(err == OK, set != NULL);
    return set;
}

static void other_keys_are_passed_over(void **state)
{
    (void)state;
    struct why why;
    struct jwks *set = parse_with(
        "{\"kty\":\"EC\",\"kid\":\"ec\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"},"
        "{\"kty\":\"oct\",\"kid\":\"oct\",\"k\":\"AAAA\"},"
        "{\"kty\":\"RSA\",\"kid\":\"small\",\"n\":\"AQAB\",\"e\":\"AQAB\"},"
        "{\"kty\":\"RSA\",\"kid\":\"none\"},{\"kty\":\"RSA\",\"kid\":7,\"n\":1,\"e\":[]},7,null,"
        "{\"kty\":\"RSA\",\"kid\":\"odd\",\"n\":\"AQA=B\",\"e\":\"A\"}",
        &why);
    assert_true(jwks_has(set, STR_LIT("ka")));
    static const char *const passed_over[] = { "ec", "oct", "small", "none", "k", "odd" };
    for (size_t i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++)
        assert_false(jwks_has(set, str_of(passed_over[i])));
    jwks_free(set);
}

/* A good key but for one word: for encryption, or for another algorithm. */
static void keys_for_other_uses_are_passed_over(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        { "\"use\":\"sig\"", "\"use\":\"enc\"" },
        { "\"alg\":\"RS256\"", "\"alg\":\"PS256\"" },
        { "\"kty\":\"RSA\"", "\"kty\":\"rsa\"" },
    };
    struct why why;
    struct jwt_key *key;
    assert_int_equal(jwt_key_new(&key, str_of(KEY_B), &why), OK);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char *CLEANUP(mem_free_char) text = NULL;
        struct jwks *set = NULL;
        assert_int_equal(jwt_key_jwks(key, STR_LIT("kb"), &text, &why), OK);
        char *at = strstr(text, words[i][0]);
        assert_non_null(at);
        memcpy(at, words[i][1], strlen(words[i][1]));
        assert_int_equal(jwks_parse(&set, str_of(text), &why), ERR_REFUSE);
    }
    jwt_key_free(key);
}

static void a_document_without_a_usable_key_is_refused(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[{\"kty\":\"EC\"}]}",
        "{\"keys\":[],\"keys\":[]}",
        "{\"keys\":[",
    };
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        struct jwks *set = NULL;
        struct why why = { "" };
        assert_int_equal(jwks_parse(&set, str_of(documents[i]), &why), ERR_REFUSE);
        assert_null(set);
        assert_string_not_equal(why.text, "");
    }
    jwks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_keys_are_passed_over),
        cmocka_unit_test(keys_for_other_uses_are_passed_over),
        cmocka_unit_test(a_document_without_a_usable_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

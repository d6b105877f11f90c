#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/crypto/hmac.h"

static void repeat(char *to, char byte, size_t n)
{
    memset(to, byte, n);
}

/* RFC 4231 sections 4.2, 4.3, 4.7 and the example of GitHub's documentation. */
static void known_answers(void **state)
{
    (void)state;
    char k20[20], k131[131];
    repeat(k20, 0x0b, sizeof(k20));
    repeat(k131, (char)0xaa, sizeof(k131));
    const struct {
        struct str key, data;
        const char *hex;
    } cases[] = {
        { { k20, sizeof(k20) },
          STR_LIT("Hi There"),
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { STR_LIT("Jefe"), STR_LIT("what do ya want for nothing?"),
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { { k131, sizeof(k131) },
          STR_LIT("Test Using Larger Than Block-Size Key - Hash Key First"),
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        { STR_LIT("It's a Secret to Everybody"), STR_LIT("Hello, World!"),
          "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char hex[SHA256_HEX_SIZE];
        hmac_sha256_hex(cases[i].key, cases[i].data, hex);
        assert_string_equal(hex, cases[i].hex);
        assert_true(hmac_sha256_matches(cases[i].key, cases[i].data, str_of(hex)));
    }
}

static void empty_key_and_data_are_hashed(void **state)
{
    (void)state;
    char hex[SHA256_HEX_SIZE];
    hmac_sha256_hex(STR_LIT("other"), STR_LIT("other"), hex); /* must not linger as the key */
    hmac_sha256_hex(STR_NONE, STR_NONE, hex);
    assert_string_equal(hex, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void upper_case_hex_matches(void **state)
{
    (void)state;
    assert_true(hmac_sha256_matches(
        STR_LIT("Jefe"), STR_LIT("what do ya want for nothing?"),
        STR_LIT("5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843")));
}

static void anything_else_does_not_match(void **state)
{
    (void)state;
    struct str key = STR_LIT("Jefe"), data = STR_LIT("what do ya want for nothing?");
    char good[] = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    for (size_t i = 0; i < 64; i++) { /* any one digit changed */
        char before = good[i];
        good[i] = before == '0' ? '1' : '0';
        assert_false(hmac_sha256_matches(key, data, str_of(good)));
        good[i] = 'g';
        assert_false(hmac_sha256_matches(key, data, str_of(good)));
        good[i] = before;
    }
    assert_false(hmac_sha256_matches(key, data, (struct str){ good, 63 }));
    assert_false(hmac_sha256_matches(key, data, STR_NONE));
    assert_false(hmac_sha256_matches(key, data, STR_LIT("")));
    assert_false(hmac_sha256_matches(STR_LIT("jefe"), data, str_of(good)));
    assert_true(hmac_sha256_matches(key, data, str_of(good)));
}

static void sha256_of_abc(void **state)
{
    (void)state;
    char hex[SHA256_HEX_SIZE];
    sha256_hex(STR_LIT("abc"), hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex(STR_NONE, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void random_hex_is_long_enough_and_differs(void **state)
{
    (void)state;
    char a[201], b[201];
    random_hex(a, 100);
    random_hex(b, 100);
    assert_int_equal(strlen(a), 200);
    assert_int_equal(strspn(a, "0123456789abcdef"), 200);
    assert_string_not_equal(a, b);
    random_hex(a, 4);
    assert_int_equal(strlen(a), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(empty_key_and_data_are_hashed),
        cmocka_unit_test(upper_case_hex_matches),
        cmocka_unit_test(anything_else_does_not_match),
        cmocka_unit_test(sha256_of_abc),
        cmocka_unit_test(random_hex_is_long_enough_and_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

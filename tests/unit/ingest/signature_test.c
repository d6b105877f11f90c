#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "ingest/signature.h"

/* The example of GitHub's documentation ("Testing the webhook payload validation"). */
#define SECRET "It's a Secret to Everybody"
#define BODY   "Hello, World!"
#define HEX    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

static void githubs_own_example_matches(void **state)
{
    (void)state;
    struct signature_secrets s;
    struct why why;
    assert_int_equal(signature_secrets_init(&s, SECRET, &why), OK);
    struct str hex;
    assert_true(signature_form(STR_LIT("sha256=" HEX), &hex));
    assert_true(signature_matches(&s, STR_LIT(BODY), hex));
    assert_false(signature_matches(&s, STR_LIT(BODY " "), hex));
    signature_secrets_clear(&s);
}

static void any_of_the_secrets_will_do(void **state)
{
    (void)state;
    struct signature_secrets s;
    struct why why;
    assert_int_equal(signature_secrets_init(&s, "new, " SECRET " ,older", &why), OK);
    assert_int_equal(s.n, 3);
    assert_true(signature_matches(&s, STR_LIT(BODY), STR_LIT(HEX)));
    signature_secrets_clear(&s);
    assert_int_equal(signature_secrets_init(&s, "new,older", &why), OK);
    assert_false(signature_matches(&s, STR_LIT(BODY), STR_LIT(HEX)));
    signature_secrets_clear(&s);
}

static void empty_secrets_are_refused_and_not_printed(void **state)
{
    (void)state;
    static const char *const texts[] = { "", ",", "a,,b", " ", "1,2,3,4,5,6,7,8,hush" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct signature_secrets s;
        struct why why = { "" };
        assert_int_equal(signature_secrets_init(&s, texts[i], &why), ERR_REFUSE);
        assert_null(strstr(why.text, "hush"));
    }
}

static void other_forms_are_no_signature(void **state)
{
    (void)state;
    static const char *const texts[] = { "",
                                         HEX,
                                         "sha1=" HEX,
                                         "sha256=",
                                         "SHA256=" HEX,
                                         "sha256=" HEX "0",
                                         "sha256= " HEX,
                                         "sha256=x57107ea0eb2509fc211221cce984b8a37570b6d7586c22c4"
                                         "6f4379c8b043e17" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct str hex;
        assert_false(signature_form(str_of(texts[i]), &hex));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(githubs_own_example_matches),
        cmocka_unit_test(any_of_the_secrets_will_do),
        cmocka_unit_test(empty_secrets_are_refused_and_not_printed),
        cmocka_unit_test(other_forms_are_no_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

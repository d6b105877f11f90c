#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ingest/webhook.h"

static void assert_payload(const char *body, const char *expected)
{
    char *text = NULL;
    size_t len = 0;
    struct why why = { "" };
    if (form_payload(str_of(body), &text, &len, &why))
        fail_msg("%s: %s", body, why.text);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(text, expected);
    free(text);
}

static void assert_no_payload(const char *body)
{
    char *text = NULL;
    size_t len;
    struct why why;
    assert_int_equal(form_payload(str_of(body), &text, &len, &why), ERR_REFUSE);
    assert_null(text);
}

static void payload_is_decoded(void **state)
{
    (void)state;
    assert_payload("payload=%7B%22a%22%3A+%221%2B1%22%7D", "{\"a\": \"1+1\"}");
    assert_payload("x=1&payload=%c3%A9&y", "\xc3\xa9");
    assert_payload("payload=", "");
}

static void what_is_missing_doubled_or_broken_is_refused(void **state)
{
    (void)state;
    assert_no_payload("");
    assert_no_payload("x=1");
    assert_no_payload("xpayload=1");
    assert_no_payload("payload=1&payload=2");
    assert_no_payload("payload=%");
    assert_no_payload("payload=%4");
    assert_no_payload("payload=%4g");
}

static void content_type_tells_a_form(void **state)
{
    (void)state;
    assert_true(form_is(STR_LIT("application/x-www-form-urlencoded")));
    assert_true(form_is(STR_LIT("Application/X-WWW-Form-Urlencoded ; charset=utf-8")));
    assert_false(form_is(STR_LIT("application/json")));
    assert_false(form_is(STR_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_is_decoded),
        cmocka_unit_test(what_is_missing_doubled_or_broken_is_refused),
        cmocka_unit_test(content_type_tells_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/github/dispatch.h"

static struct dispatch example(struct str payload)
{
    return (struct dispatch){ .repo = STR_LIT("org/a"),
                              .event_type = "pull_request",
                              .delivery = STR_LIT("d-1"),
                              .payload = payload };
}

static void the_payload_is_spliced_byte_for_byte(void **state)
{
    (void)state;
    struct buf body;
    struct dispatch d = example(STR_LIT("{ \"n\" : 1.50, \"u\":\"\\u00e9\" }"));
    buf_init(&body, 70000);
    d.trimmed = STR_LIT("[\"x\"]");
    assert_int_equal(dispatch_body(&body, &d, STR_LIT("a.b.c"), NULL), OK);
    assert_string_equal(buf_str(&body).ptr,
                        "{\"event_type\":\"pull_request\",\"client_payload\":{"
                        "\"event_type\":\"pull_request\",\"delivery_id\":\"d-1\","
                        "\"payload\":{ \"n\" : 1.50, \"u\":\"\\u00e9\" },"
                        "\"callback_token\":\"a.b.c\",\"payload_trimmed\":[\"x\"]}}");
    buf_clear(&body);
}

static void white_space_around_the_payload_is_left_out(void **state)
{
    (void)state;
    static const char *const around[] = { " ", "\t", "\r\n", "\n", "\n\n " };
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        char payload[16];
        struct buf body;
        snprintf(payload, sizeof(payload), "%s{}%s", around[i], around[i]);
        struct dispatch d = example(str_of(payload));
        buf_init(&body, 70000);
        d.trimmed = STR_LIT("[\"x\"]");
        for (int with_token = 0; with_token < 2; with_token++) {
            struct str token = with_token ? STR_LIT("a.b.c") : STR_NONE;
            assert_int_equal(dispatch_body(&body, &d, token, NULL), OK);
            assert_non_null(strstr(buf_str(&body).ptr,
                                   with_token
                                       ? "\"payload\":{},\"callback_token\":\"a.b.c\",\"payload_t"
                                       : "\"payload\":{},\"payload_trimmed\":[\"x\"]}}"));
        }
        buf_clear(&body);
    }
}

static void what_is_absent_is_not_there(void **state)
{
    (void)state;
    struct buf body;
    struct dispatch d = example(STR_LIT("{}"));
    buf_init(&body, 70000);
    assert_int_equal(dispatch_body(&body, &d, STR_NONE, NULL), OK);
    assert_null(strstr(buf_str(&body).ptr, "callback_token"));
    assert_null(strstr(buf_str(&body).ptr, "payload_trimmed"));
    buf_clear(&body);
}

static void too_large_first_costs_the_list_of_what_was_trimmed(void **state)
{
    (void)state;
    struct buf body;
    struct dispatch d = example(STR_NONE);
    struct why why;
    char *large = malloc(66000);
    memset(large, '1', 66000);
    d.trimmed = (struct str){ large, 8000 };
    d.payload = (struct str){ large, 60000 };
    buf_init(&body, 70000);
    assert_int_equal(dispatch_body(&body, &d, STR_NONE, &why), OK);
    assert_null(strstr(buf_str(&body).ptr, "payload_trimmed"));
    assert_false(buf_full(&body));
    d.payload.len = 65536;
    assert_int_equal(dispatch_body(&body, &d, STR_NONE, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "65535"));
    buf_clear(&body);
    free(large);
}

/* GitHub's limit is on client_payload: what is around it counts for nothing. */
static void a_client_payload_of_the_limit_goes_and_one_byte_more_does_not(void **state)
{
    (void)state;
    struct dispatch d = example(STR_LIT("1"));
    struct buf body = BUF_INIT(70000);
    struct why why;
    char *large = malloc(66000);
    assert_int_equal(dispatch_body(&body, &d, STR_LIT("a.b.c"), &why), OK);
    size_t around = strlen("{\"event_type\":\"pull_request\",\"client_payload\":}");
    size_t room = 65535 - (body.len - around) + 1;
    memset(large, '1', 66000);
    d.payload = (struct str){ large, room };
    assert_int_equal(dispatch_body(&body, &d, STR_LIT("a.b.c"), &why), OK);
    assert_int_equal(body.len, around + 65535);
    d.payload.len++;
    assert_int_equal(dispatch_body(&body, &d, STR_LIT("a.b.c"), &why), ERR_REFUSE);
    d.payload.len = room; /* the same buffer again */
    d.trimmed = STR_LIT("[\"x\"]");
    assert_int_equal(dispatch_body(&body, &d, STR_LIT("a.b.c"), &why), OK);
    assert_int_equal(body.len, around + 65535);
    buf_clear(&body);
    free(large);
}

static void nothing_to_send_is_refused(void **state)
{
    (void)state;
    struct buf body;
    struct dispatch d = example(STR_NONE);
    buf_init(&body, 70000);
    assert_int_equal(dispatch_body(&body, &d, STR_NONE, NULL), ERR_REFUSE);
    assert_int_equal(body.len, 0);
    buf_clear(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_payload_is_spliced_byte_for_byte),
        cmocka_unit_test(white_space_around_the_payload_is_left_out),
        cmocka_unit_test(what_is_absent_is_not_there),
        cmocka_unit_test(too_large_first_costs_the_list_of_what_was_trimmed),
        cmocka_unit_test(a_client_payload_of_the_limit_goes_and_one_byte_more_does_not),
        cmocka_unit_test(nothing_to_send_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>
#include <cmocka.h>

#include "common/github/pulls.h"

#define SHA "ec26c3e57ca3a959ca5aad62de7213c562f8c821"

static const char open_pull[] =
    "{\"number\":17,\"state\":\"open\",\"updated_at\":\"2023-11-14T22:13:20Z\","
    "\"labels\":[{\"name\":\"ciflow/crcr/npu\"}],\"head\":{\"sha\":\"" SHA "\"}}";
static const char asked[] =
    "{\"action\":\"rerequested\",\"check_run\":{\"id\":4},\"repository\":{\"full_name\":"
    "\"pytorch/pytorch\"},\"sender\":{\"login\":\"alice\"},\"installation\":{\"id\":9}}";

static void what_a_pull_request_is_now_is_read(void **state)
{
    struct pull pull;
    (void)state;
    assert_int_equal(pull_read(str_of(open_pull), &pull, NULL), OK);
    assert_int_equal(pull.number, 17);
    assert_true(pull.open);
    assert_string_equal(pull.head_sha, SHA);
    assert_true(pull.updated_ms == 1700000000000);
}

static void a_closed_one_is_not_open(void **state)
{
    struct pull pull;
    (void)state;
    assert_int_equal(pull_read(STR_LIT("{\"number\":1,\"state\":\"closed\",\"head\":{\"sha\":\"" SHA
                                       "\"},\"updated_at\":\"2023-11-14T22:13:20Z\"}"),
                               &pull, NULL),
                     OK);
    assert_false(pull.open);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"number\":1,\"head\":{\"sha\":\"" SHA "\"}}",
        "{\"number\":\"1\",\"head\":{\"sha\":\"" SHA "\"},\"updated_at\":\"2023-11-14T22:13:20Z\"}",
        "{\"number\":1,\"head\":null,\"updated_at\":\"2023-11-14T22:13:20Z\"}",
    };
    struct pull pull;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(pull_read(str_of(bad[i]), &pull, NULL), ERR_REFUSE);
}

static void the_event_has_what_downstream_workflows_read(void **state)
{
    struct buf text;
    json_t *event, *pull;
    (void)state;
    buf_init(&text, 100000);
    assert_int_equal(pull_event(str_of(open_pull), str_of(asked), &text, NULL), OK);
    event = json_loads(text.ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(event);
    pull = json_object_get(event, "pull_request");
    assert_string_equal(json_string_value(json_object_get(event, "action")), "reopened");
    assert_int_equal(json_integer_value(json_object_get(event, "number")), 17);
    assert_string_equal(json_string_value(json_object_get(json_object_get(pull, "head"), "sha")),
                        SHA);
    assert_int_equal(json_array_size(json_object_get(pull, "labels")), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(event, "repository"), "full_name")),
        "pytorch/pytorch");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(event, "sender"), "login")), "alice");
    assert_non_null(json_object_get(event, "installation"));
    assert_null(json_object_get(event, "check_run"));
    json_decref(event);
    buf_clear(&text);
}

static void nul_and_halves_of_surrogate_pairs_are_no_hindrance(void **state)
{
    struct pull pull;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(10000);
    struct str odd = STR_LIT("{\"number\":17,\"state\":\"open\",\"title\":\"a\\u0000\\ud800b\","
                             "\"x\\u0000\":{\"\\udc00\":1},\"head\":{\"sha\":\"" SHA
                             "\"},\"updated_at\":\"2023-11-14T22:13:20Z\"}");
    (void)state;
    assert_int_equal(pull_read(odd, &pull, NULL), OK);
    assert_int_equal(pull.number, 17);
    assert_int_equal(pull_event(odd, STR_LIT("{\"sender\":{\"name\":\"\\udc00\"}}"), &text, NULL),
                     OK);
    assert_non_null(strstr(text.ptr, "\"title\":\"a\\u0000\\u0000b\""));
    assert_non_null(strstr(text.ptr, "\"sender\":{\"name\":\"\\u0000\"}"));
}

static void what_is_no_object_makes_no_event(void **state)
{
    struct buf text;
    (void)state;
    buf_init(&text, 1000);
    assert_int_equal(pull_event(STR_LIT("[]"), str_of(asked), &text, NULL), ERR_REFUSE);
    assert_int_equal(pull_event(str_of(open_pull), STR_LIT(""), &text, NULL), ERR_REFUSE);
    assert_int_equal(text.len, 0);
    buf_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_pull_request_is_now_is_read),
        cmocka_unit_test(a_closed_one_is_not_open),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(the_event_has_what_downstream_workflows_read),
        cmocka_unit_test(nul_and_halves_of_surrogate_pairs_are_no_hindrance),
        cmocka_unit_test(what_is_no_object_makes_no_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

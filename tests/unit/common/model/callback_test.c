#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/buf.h"
#include "common/model/callback.h"

#define DELIVERY "\"delivery_id\":\"72d3162e-cc78-11e3-81ab-4c9367dc0958\""
#define BODY(workflow)                                                                             \
    "{\"event_type\":\"pull_request\"," DELIVERY ",\"payload\":{\"action\":\"opened\"},"           \
    "\"callback_token\":\"a.b.c\",\"workflow\":{" workflow "}}"
#define NEEDED   "\"status\":\"in_progress\",\"name\":\"CI\",\"run_id\":17"
#define FINISHED "\"status\":\"completed\",\"conclusion\":\"success\",\"name\":\"CI\",\"run_id\":17"

static struct callback parse(const char *body)
{
    struct callback c;
    struct why why = { "" };
    if (callback_parse(str_of(body), STR_NONE, &c, &why))
        fail_msg("refused: %s\n%s", why.text, body);
    return c;
}

static void assert_refused(const char *body, const char *holds)
{
    struct callback c;
    struct why why = { "" };
    if (callback_parse(str_of(body), STR_NONE, &c, &why) != ERR_REFUSE)
        fail_msg("was taken: %s", body);
    if (!strstr(why.text, holds))
        fail_msg("the reason is \"%s\", wanted \"%s\" for %s", why.text, holds, body);
}

static void states_rise_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    assert_true(JOB_NONE < JOB_DISPATCHED && JOB_DISPATCHED < JOB_IN_PROGRESS &&
                JOB_IN_PROGRESS < JOB_TIMED_OUT && JOB_TIMED_OUT < JOB_COMPLETED);
    for (int s = JOB_NONE; s <= JOB_COMPLETED; s++)
        assert_int_equal(job_state_of(str_of(job_state_name((enum job_state)s))), s);
    assert_int_equal(job_state_of(STR_LIT("unheard of")), JOB_NONE);
    assert_int_equal(job_state_of(STR_NONE), JOB_NONE);
}

static void githubs_conclusions_are_known(void **state)
{
    (void)state;
    assert_true(conclusion_valid(STR_LIT("action_required")));
    assert_true(conclusion_valid(STR_LIT("stale")));
    assert_false(conclusion_valid(STR_LIT("Success")));
    assert_false(conclusion_valid(STR_LIT("")));
    assert_false(conclusion_valid(STR_NONE));
}

static void all_fields_are_read(void **state)
{
    (void)state;
    struct callback c = parse(BODY(
        "\"schema_version\":\"1\",\"status\":\"completed\",\"conclusion\":\"failure\",\"name\":"
        "\"CI\",\"url\":\"https://github.com/o/r/actions/runs/17\",\"run_id\":\"17\",\"run_"
        "attempt\":2,\"job_name\":\"test / x:1\",\"check_run_id\":99,\"started_at\":\"2026-01-"
        "02T03:04:05Z\",\"completed_at\":\"2026-01-02T04:04:05.123+01:00\",\"test_results\":{"
        "\"passed\":5,\"failed\":1,\"skipped\":2},\"artifact_url\":\"https://x.example/"
        "a\",\"environment\":\"npu\",\"run_complete\":true"));
    assert_string_equal(c.event_type, "pull_request");
    assert_string_equal(c.delivery_id, "72d3162e-cc78-11e3-81ab-4c9367dc0958");
    assert_string_equal(c.callback_token, "a.b.c");
    assert_int_equal(c.status, JOB_COMPLETED);
    assert_string_equal(c.conclusion, "failure");
    assert_string_equal(c.workflow_name, "CI");
    assert_string_equal(c.job_name, "test / x:1");
    assert_string_equal(c.run_id, "17");
    assert_string_equal(c.run_attempt, "2");
    assert_string_equal(c.check_run_id, "99");
    assert_string_equal(c.url, "https://github.com/o/r/actions/runs/17");
    assert_string_equal(c.artifact_url, "https://x.example/a");
    assert_string_equal(c.started_at, "2026-01-02T03:04:05Z");
    assert_string_equal(c.completed_at, "2026-01-02T04:04:05.123+01:00");
    assert_string_equal(c.environment, "npu");
    assert_true(c.run_complete);
    assert_true(c.has_tests);
    assert_int_equal(c.passed, 5);
    assert_int_equal(c.total, 8);
    assert_null(c.failed_tests);
    assert_null(c.triage_verdict);
    assert_false(callback_is_self(&c));
    callback_clear(&c);
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    struct callback c = parse(BODY(NEEDED));
    assert_string_equal(c.job_name, "CI");
    assert_string_equal(c.run_attempt, "1");
    assert_string_equal(c.check_run_id, "17-1");
    assert_string_equal(c.conclusion, "");
    assert_false(c.has_tests);
    assert_false(c.run_complete);
    callback_clear(&c);

    c = parse(BODY(NEEDED ",\"test_results\":{\"passed\":1,\"total\":9}"));
    assert_int_equal(c.total, 9);
    callback_clear(&c);

    c = parse(BODY(NEEDED ",\"job_name\":\"\",\"run_attempt\":null,\"check_run_id\":\"\",\"url\":"
                          "null,\"test_results\":null,\"triage_verdict\":null,"
                          "\"failed_tests_detail\":null"));
    assert_string_equal(c.job_name, "CI");
    assert_string_equal(c.check_run_id, "17-1");
    callback_clear(&c);
}

static void an_absent_attempt_is_the_proven_one(void **state)
{
    (void)state;
    struct callback c;
    struct why why;
    assert_int_equal(callback_parse(STR_LIT(BODY(NEEDED)), STR_LIT("3"), &c, &why), OK);
    assert_string_equal(c.run_attempt, "3");
    assert_string_equal(c.check_run_id, "17-3");
    callback_clear(&c);
    assert_int_equal(callback_parse(STR_LIT(BODY(NEEDED)), STR_LIT("3 \xe0\xcd"), &c, &why), OK);
    assert_string_equal(c.run_attempt, "1"); /* a proven one is a number */
    callback_clear(&c);
    assert_int_equal(
        callback_parse(STR_LIT(BODY(NEEDED ",\"run_attempt\":2")), STR_LIT("3"), &c, &why), OK);
    assert_string_equal(c.run_attempt, "2");
    assert_string_equal(c.check_run_id, "17-2");
    callback_clear(&c);
}

static void ids_may_be_numbers_or_strings(void **state)
{
    (void)state;
    struct callback c = parse(BODY("\"status\":\"in_progress\",\"name\":12,\"job_name\":34,\"run_"
                                   "id\":\"0191f7a4-1c2d\",\"run_attempt\":\"3\""));
    assert_string_equal(c.workflow_name, "12");
    assert_string_equal(c.job_name, "34");
    assert_string_equal(c.run_id, "0191f7a4-1c2d");
    assert_string_equal(c.check_run_id, "0191f7a4-1c2d-3");
    callback_clear(&c);
    c = parse(BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":9223372036854775807"));
    assert_string_equal(c.run_id, "9223372036854775807");
    callback_clear(&c);
}

static void a_conclusion_before_the_end_is_not_believed(void **state)
{
    (void)state;
    struct callback c = parse(BODY(NEEDED ",\"conclusion\":\"success\""));
    assert_string_equal(c.conclusion, "");
    callback_clear(&c);
}

static void a_self_report_is_completed_and_may_lack_a_conclusion(void **state)
{
    (void)state;
#define SELF(type, workflow)                                                                       \
    "{\"event_type\":\"" type "\"," DELIVERY ",\"workflow\":{" workflow "}}"
    struct callback c =
        parse(SELF("nightly", "\"status\":\"completed\",\"conclusion\":null,\"name\":\"n\","
                              "\"run_id\":1"));
    assert_true(callback_is_self(&c));
    assert_string_equal(c.conclusion, "");
    callback_clear(&c);
    c = parse(SELF("periodic", FINISHED));
    assert_true(callback_is_self(&c));
    callback_clear(&c);
    assert_refused(SELF("nightly", NEEDED), "must be completed");
    assert_refused(SELF("nightly", "\"status\":\"completed\",\"conclusion\":\"meh\",\"name\":\"n\","
                                   "\"run_id\":1"),
                   "workflow.conclusion is unknown");
}

static void a_refusal_names_the_field_and_what_is_accepted(void **state)
{
    (void)state;
    char body[4000];
    static const struct {
        const char *body, *holds;
    } bad[] = {
        { "", "JSON" },
        { "[]", "object" },
        { "{", "JSON" },
        { "{} {}", "JSON" },
        { "{}", "workflow.status" },
        { "{\"workflow\":{" NEEDED "}}", "delivery_id is missing" },
        { "{\"delivery_id\":\"a/b\",\"workflow\":{" NEEDED "}}", "delivery_id is malformed" },
        { "{\"delivery_id\":5,\"workflow\":{" NEEDED "}}", "delivery_id must be a string" },
        { "{\"delivery_id\":\"a\",\"workflow\":[" NEEDED "]}", "JSON" },
        { "{\"delivery_id\":\"a\",\"workflow\":[1]}", "workflow.status" },
        { "{\"delivery_id\":\"a\",\"delivery_id\":\"a\",\"workflow\":{" NEEDED "}}", "twice" },
        { BODY(NEEDED ",\"status\":\"completed\""), "twice" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":-0"), "whole number from 0" },
        { BODY("\"status\":\"queued\",\"name\":\"n\",\"run_id\":1"), "in_progress and completed" },
        { BODY("\"status\":\"timed_out\",\"name\":\"n\",\"run_id\":1"), "in_progress and" },
        { BODY("\"status\":5,\"name\":\"n\",\"run_id\":1"), "in_progress and completed" },
        { BODY("\"status\":\"completed\",\"conclusion\":\"won\",\"name\":\"n\",\"run_id\":1"),
          "accepted are success" },
        { BODY("\"status\":\"in_progress\",\"run_id\":1"), "workflow.name is missing" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\""), "workflow.run_id is missing" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":0"), "workflow.run_id is 0" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":\"0\""), "run_id is 0" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":-1"), "whole number" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":1.5"), "whole number" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":1e3"), "whole number" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":true"), "workflow.run_id" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":{}"), "workflow.run_id" },
        { BODY("\"status\":\"in_progress\",\"name\":\"n\",\"run_id\":\"a b\""), "malformed" },
        { BODY(NEEDED ",\"run_attempt\":\"a b\""), "workflow.run_attempt" },
        { BODY(NEEDED ",\"check_run_id\":\"a\\nb\""), "workflow.check_run_id" },
        { BODY(NEEDED ",\"job_name\":[]"), "workflow.job_name" },
        { BODY(NEEDED ",\"job_name\":\"\\u0000\""), "NUL" },
        { BODY(NEEDED ",\"environment\":\"\\ud800\""), "surrogate" },
        { BODY(NEEDED ",\"x\":\"\xff\""), "UTF-8" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_refused(bad[i].body, bad[i].holds);

    strcpy(body, "{\"payload\":");
    for (int i = 0; i < 70; i++)
        strcat(body, "[");
    assert_refused(body, "nested too deeply");
    strcpy(body, "{" DELIVERY ",\"workflow\":{\"name\":\"");
    size_t len = strlen(body);
    memset(body + len, 'x', NAME_MAX_BYTES + 1);
    strcpy(body + len + NAME_MAX_BYTES + 1, "\",\"status\":\"in_progress\",\"run_id\":1}}");
    assert_refused(body, "workflow.name has 513 bytes; at most 512");
}

/* Each behind a letter; NUL is refused by the scan. */
static const char *const deceptive[] = {
    "\\u0001", "\\n",     "\\u001f", "\\u007f", "\\u0080", "\\u009f",  "\\u061c",      "\\u200e",
    "\\u200f", "\\u202a", "\\u202e", "\\u2066", "\\u2069", "\xc2\x85", "\xe2\x80\xae",
};

static void names_with_control_or_bidirectional_characters_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "name", "job_name", "run_id", "run_attempt",
                                         "check_run_id" };
    for (size_t i = 0; i < sizeof(deceptive) / sizeof(deceptive[0]); i++)
        for (size_t f = 0; f < sizeof(texts) / sizeof(texts[0]); f++) {
            char body[512], says[64];
            const char *rest = f == 0   ? ",\"run_id\":17"
                               : f == 2 ? ",\"name\":\"CI\""
                                        : ",\"run_id\":17,\"name\":\"CI\"";
            snprintf(body, sizeof(body), BODY("\"status\":\"in_progress\",\"%s\":\"x%s\"%s"),
                     texts[f], deceptive[i], rest);
            snprintf(says, sizeof(says), "workflow.%s has a control or bidirectional", texts[f]);
            assert_refused(body, says);
        }
    struct callback c = parse(BODY(NEEDED ",\"job_name\":\"\u05d0 \u4e2d \\u200d\""));
    assert_string_equal(c.job_name, "\u05d0 \u4e2d \u200d");
    callback_clear(&c);
}

static void links_are_https_and_plain(void **state)
{
    (void)state;
    static const char *const dropped[] = { "http://x.example/a", "HTTPS://x.example/a",
                                           "ftp://x.example/a", "https://x.example/a b",
                                           "https://x.example/\\u202ea" };
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        char body[512];
        snprintf(body, sizeof(body), BODY(NEEDED ",\"url\":\"%s\",\"artifact_url\":\"%s\""),
                 dropped[i], dropped[i]);
        struct callback c = parse(body);
        assert_string_equal(c.url, "");
        assert_string_equal(c.artifact_url, "");
        callback_clear(&c);
    }
    struct callback c = parse(BODY(NEEDED ",\"environment\":\"n\\u202epu\""));
    assert_string_equal(c.environment, "");
    callback_clear(&c);
}

static void information_that_cannot_be_used_is_passed_over(void **state)
{
    (void)state;
    struct callback c = parse(BODY(
        FINISHED ",\"url\":\"javascript:alert(1)\",\"artifact_url\":\"https://a b\",\"started_at\":"
                 "\"noon\",\"completed_at\":5,\"environment\":{\"x\":1},\"test_results\":{"
                 "\"passed\":-1,\"failed\":\"2\",\"skipped\":1.5,\"total\":99999999999999999999},"
                 "\"run_complete\":1"));
    assert_string_equal(c.url, "");
    assert_string_equal(c.artifact_url, "");
    assert_string_equal(c.started_at, "");
    assert_string_equal(c.completed_at, "");
    assert_string_equal(c.environment, "");
    assert_true(c.has_tests);
    assert_int_equal(c.passed, 0);
    assert_int_equal(c.failed, 2);
    assert_int_equal(c.total, 2);
    assert_false(c.run_complete);
    callback_clear(&c);
}

static void a_time_far_from_ours_is_passed_over(void **state)
{
    (void)state;
    static const char *const far[] = { "0000-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
                                       "2100-01-01T00:00:00Z", "9999-12-31T23:59:59Z" };
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        char body[512];
        snprintf(body, sizeof(body), BODY(FINISHED ",\"started_at\":\"%s\""), far[i]);
        struct callback c = parse(body);
        assert_string_equal(c.started_at, "");
        callback_clear(&c);
    }
    struct callback c = parse(BODY(FINISHED ",\"started_at\":\"2099-12-31T23:59:59.999Z\""));
    assert_string_equal(c.started_at, "2099-12-31T23:59:59.999Z");
    callback_clear(&c);
}

static void the_payload_is_not_read(void **state)
{
    (void)state;
    struct callback c = parse("{" DELIVERY ",\"payload\":{\"delivery_id\":\"x\",\"workflow\":{"
                              "\"status\":\"completed\"}},\"workflow\":{" NEEDED
                              ",\"inner\":{\"status\":\"completed\",\"run_id\":99}}}");
    assert_int_equal(c.status, JOB_IN_PROGRESS);
    assert_string_equal(c.run_id, "17");
    callback_clear(&c);
}

/* ---- failed_tests_detail -------------------------------------------------------------------- */

static json_t *rows_of(const struct callback *c)
{
    assert_non_null(c->failed_tests);
    json_t *rows = json_loads(c->failed_tests, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(rows);
    return rows;
}

static const char *text_of(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static void nul_and_half_a_surrogate_pair_are_refused_only_where_they_are_read(void **state)
{
    (void)state;
    struct callback c =
        parse("{" DELIVERY ",\"payload\":{\"title\":\"\\u0000 \\ud800\",\"\\u0000\":1},"
              "\"workflow\":{" FINISHED ",\"other\":\"\\udfff\",\"failed_tests_detail\":[{"
              "\"name\":\"t\\u0000\",\"message\":\"\\ud83d!\",\"stacktrace\":\"\\u0000\"}],"
              "\"triage_verdict\":{\"schema_version\":\"1\",\"category\":\"infra\",\"confidence\":"
              "\"low\","
              "\"summary\":\"lost\\u0000\"}}}");
    json_t *rows = rows_of(&c);
    assert_string_equal(text_of(json_array_get(rows, 0), "name"), "t\xef\xbf\xbd");
    assert_string_equal(text_of(json_array_get(rows, 0), "message"), "\xef\xbf\xbd!");
    assert_string_equal(text_of(json_array_get(rows, 0), "stacktrace"), "\xef\xbf\xbd");
    assert_non_null(strstr(c.triage_verdict, "lost\xef\xbf\xbd"));
    json_decref(rows);
    callback_clear(&c);
}

static void failed_tests_are_kept_with_their_known_members(void **state)
{
    (void)state;
    struct callback c = parse(
        BODY(FINISHED ",\"failed_tests_detail\":[{\"name\":\"t\\\"1\",\"classname\":\"C\","
                      "\"message\":\"m\",\"stacktrace\":\"s\\n\",\"duration\":1.25,\"junk\":[{"
                      "\"name\":\"inner\"}]},{\"name\":\"t2\",\"message\":5,\"duration\":\"2\"}]"));
    json_t *rows = rows_of(&c);
    assert_int_equal(json_array_size(rows), 2);
    const json_t *row = json_array_get(rows, 0);
    assert_string_equal(text_of(row, "name"), "t\"1");
    assert_string_equal(text_of(row, "classname"), "C");
    assert_string_equal(text_of(row, "stacktrace"), "s\n");
    assert_true(json_real_value(json_object_get(row, "duration")) == 1.25);
    assert_int_equal(json_object_size(row), 5);
    assert_int_equal(json_object_size(json_array_get(rows, 1)), 1);
    assert_int_equal(c.failed_tests_cut, 0);
    json_decref(rows);
    callback_clear(&c);
}

static void rows_that_say_nothing_are_counted_out(void **state)
{
    (void)state;
    struct callback c =
        parse(BODY(FINISHED ",\"failed_tests_detail\":[\"x\",{\"name\":\"t\"},{\"message\":\"m\"},"
                            "5,[],{\"name\":\"\"},{\"name\":\"u\"}]"));
    json_t *rows = rows_of(&c);
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(text_of(json_array_get(rows, 1), "name"), "u");
    assert_int_equal(json_object_size(json_array_get(rows, 1)), 1);
    assert_int_equal(c.failed_tests_cut, 5);
    json_decref(rows);
    callback_clear(&c);
}

static void the_thousand_and_first_failed_test_is_counted_out(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body, 1u << 20);
    buf_puts(&body, "{" DELIVERY ",\"workflow\":{" FINISHED ",\"failed_tests_detail\":[");
    for (int i = 0; i < 1003; i++)
        buf_printf(&body, "%s{\"name\":\"t%d\"}", i ? "," : "", i);
    buf_puts(&body, "]}}");
    struct callback c = parse(body.ptr);
    json_t *rows = rows_of(&c);
    assert_int_equal(json_array_size(rows), 1000);
    assert_string_equal(text_of(json_array_get(rows, 999), "name"), "t999");
    assert_int_equal(c.failed_tests_cut, 3);
    json_decref(rows);
    callback_clear(&c);
    buf_clear(&body);
}

/* n characters of two bytes. */
static void put_long(struct buf *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_puts(to, "\xc3\xa9");
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body, 1u << 20);
    buf_puts(&body, "{" DELIVERY ",\"workflow\":{" FINISHED
                    ",\"failed_tests_detail\":[{\"name\":\"n\",\"message\":\"x");
    put_long(&body, 3000);
    buf_puts(&body, "\",\"stacktrace\":\"x");
    put_long(&body, 9000);
    buf_puts(&body, "\"}]}}");
    struct callback c = parse(body.ptr);
    json_t *rows = rows_of(&c);
    assert_int_equal(strlen(text_of(json_array_get(rows, 0), "message")), 1023);
    assert_int_equal(strlen(text_of(json_array_get(rows, 0), "stacktrace")), 4095);
    json_decref(rows);
    callback_clear(&c);
    buf_clear(&body);
}

static void a_fault_behind_the_arrays_leaks_nothing(void **state)
{
    (void)state;
    assert_refused(BODY("\"failed_tests_detail\":[{\"name\":\"t\"}],\"triage_verdict\":{\"schema_"
                        "version\":1,\"category\":\"infra\",\"confidence\":\"low\",\"summary\":"
                        "\"s\"},\"status\":\"meh\""),
                   "workflow.status");
    assert_refused("{\"workflow\":{\"failed_tests_detail\":[{\"name\":\"t\"}]", "JSON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_rise_in_the_order_of_their_numbers),
        cmocka_unit_test(githubs_conclusions_are_known),
        cmocka_unit_test(all_fields_are_read),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(an_absent_attempt_is_the_proven_one),
        cmocka_unit_test(ids_may_be_numbers_or_strings),
        cmocka_unit_test(a_conclusion_before_the_end_is_not_believed),
        cmocka_unit_test(a_self_report_is_completed_and_may_lack_a_conclusion),
        cmocka_unit_test(a_refusal_names_the_field_and_what_is_accepted),
        cmocka_unit_test(names_with_control_or_bidirectional_characters_are_refused),
        cmocka_unit_test(links_are_https_and_plain),
        cmocka_unit_test(information_that_cannot_be_used_is_passed_over),
        cmocka_unit_test(a_time_far_from_ours_is_passed_over),
        cmocka_unit_test(the_payload_is_not_read),
        cmocka_unit_test(nul_and_half_a_surrogate_pair_are_refused_only_where_they_are_read),
        cmocka_unit_test(failed_tests_are_kept_with_their_known_members),
        cmocka_unit_test(rows_that_say_nothing_are_counted_out),
        cmocka_unit_test(the_thousand_and_first_failed_test_is_counted_out),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(a_fault_behind_the_arrays_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

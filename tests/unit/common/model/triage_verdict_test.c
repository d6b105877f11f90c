#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/buf.h"
#include "common/model/callback.h"

#define DELIVERY "\"delivery_id\":\"72d3162e-cc78-11e3-81ab-4c9367dc0958\""
#define BODY(workflow)                                                                             \
    "{\"event_type\":\"pull_request\"," DELIVERY ",\"payload\":{\"action\":\"opened\"},"           \
    "\"callback_token\":\"a.b.c\",\"workflow\":{" workflow "}}"
#define FINISHED "\"status\":\"completed\",\"conclusion\":\"success\",\"name\":\"CI\",\"run_id\":17"

static struct callback parse(const char *body)
{
    struct callback c;
    struct why why = { "" };
    if (callback_parse(str_of(body), STR_NONE, &c, &why))
        fail_msg("refused: %s\n%s", why.text, body);
    return c;
}

static const char *text_of(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

/* n characters of two bytes. */
static void put_long(struct buf *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_puts(to, "\xc3\xa9");
}

#define VERDICT(rest)                                                                              \
    BODY(FINISHED ",\"triage_verdict\":{\"schema_version\":1,\"category\":\"upstream\","           \
                  "\"confidence\":\"high\",\"summary\":\"s\"" rest "}")

static json_t *verdict_of(const struct callback *c)
{
    assert_non_null(c->triage_verdict);
    json_t *verdict = json_loads(c->triage_verdict, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(verdict);
    return verdict;
}

static void a_verdict_is_kept_without_what_is_unknown(void **state)
{
    (void)state;
    struct callback c = parse(VERDICT(
        ",\"suspected_upstream\":{\"pr\":7,\"commit\":\"ABCdef0\",\"reason\":\"r\"},\"evidence\":[{"
        "\"job\":\"j\",\"test\":\"t\",\"excerpt\":\" e \",\"log_url\":\"https://x.example/1\","
        "\"more\":1}],\"reproduced_on_retry\":false,\"analyzer\":{\"name\":\"a\",\"colour\":1},"
        "\"analyzed_at\":\"2026-01-02T03:04:05Z\",\"extra\":true"));
    json_t *v = verdict_of(&c);
    assert_int_equal(json_object_size(v), 9);
    assert_null(json_object_get(v, "extra"));
    const json_t *row = json_array_get(json_object_get(v, "evidence"), 0);
    assert_int_equal(json_object_size(row), 4);
    assert_string_equal(text_of(row, "excerpt"), "e");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(v, "suspected_upstream"), "pr")), 7);
    assert_true(json_is_false(json_object_get(v, "reproduced_on_retry")));
    assert_int_equal(json_object_size(json_object_get(v, "analyzer")), 1);
    json_decref(v);
    callback_clear(&c);
}

static void a_structural_fault_drops_the_verdict_and_nothing_else(void **state)
{
    (void)state;
#define RAW(verdict) BODY(FINISHED ",\"triage_verdict\":" verdict)
#define PLAIN        "\"confidence\":\"low\",\"summary\":\"s\""
    static const char *const bad[] = {
        RAW("5"),
        RAW("[]"),
        RAW("\"upstream\""),
        RAW("{}"),
        RAW("{\"category\":\"infra\"," PLAIN "}"),
        RAW("{\"schema_version\":2,\"category\":\"infra\"," PLAIN "}"),
        RAW("{\"schema_version\":true,\"category\":\"infra\"," PLAIN "}"),
        RAW("{\"schema_version\":1,\"category\":\"weather\"," PLAIN "}"),
        RAW("{\"schema_version\":1,\"category\":5," PLAIN "}"),
        RAW("{\"schema_version\":1,\"category\":\"infra\",\"confidence\":\"sure\",\"summary\":"
            "\"s\"}"),
        RAW("{\"schema_version\":1,\"category\":\"infra\",\"confidence\":\"low\"}"),
        RAW("{\"schema_version\":1,\"category\":\"infra\",\"confidence\":\"low\",\"summary\":\" "
            "\"}"),
        RAW("{\"schema_version\":1,\"category\":\"infra\",\"suspected_upstream\":{\"pr\":1}," PLAIN
            "}"),
        VERDICT(",\"suspected_upstream\":{}"),
        VERDICT(",\"suspected_upstream\":[]"),
        VERDICT(",\"suspected_upstream\":{\"reason\":\"r\"}"),
        VERDICT(",\"suspected_upstream\":{\"pr\":0}"),
        VERDICT(",\"suspected_upstream\":{\"pr\":true}"),
        VERDICT(",\"suspected_upstream\":{\"pr\":\"7\"}"),
        VERDICT(",\"suspected_upstream\":{\"commit\":\"abcdef\"}"),
        VERDICT(",\"suspected_upstream\":{\"commit\":\"xyzxyzxyz\"}"),
        VERDICT(
            ",\"suspected_upstream\":{\"commit\":\"0123456789012345678901234567890123456789a\"}"),
        VERDICT(",\"evidence\":{}"),
        VERDICT(",\"evidence\":[5]"),
        VERDICT(",\"evidence\":[{\"job\":5}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"ftp://x\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"javascript:alert(1)\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"https://github.com@evil.example/\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"https://x/a b\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"https://x/\\n\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"https:///x\"}]"),
        VERDICT(",\"evidence\":[{\"log_url\":\"\"}]"),
        VERDICT(",\"reproduced_on_retry\":\"yes\""),
        VERDICT(",\"analyzer\":\"me\""),
        VERDICT(",\"analyzed_at\":\"yesterday\""),
        VERDICT(",\"analyzed_at\":5"),
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct callback c = parse(bad[i]);
        if (c.triage_verdict)
            fail_msg("was taken: %s as %s", bad[i], c.triage_verdict);
        assert_string_equal(c.conclusion, "success");
        callback_clear(&c);
    }
    struct callback c = parse(RAW("{\"schema_version\":\"1\",\"category\":\"infra\"," PLAIN "}"));
    assert_non_null(c.triage_verdict);
    callback_clear(&c);
}

static void a_long_verdict_is_cut(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body, 1u << 20);
    buf_puts(&body, "{" DELIVERY ",\"workflow\":{" FINISHED
                    ",\"triage_verdict\":{\"schema_version\":1,\"category\":\"upstream\","
                    "\"confidence\":\"high\",\"suspected_upstream\":{\"pr\":1,\"reason\":\"");
    put_long(&body, 500);
    buf_puts(&body, "\"},\"summary\":\"");
    put_long(&body, 1500);
    buf_puts(&body, "\",\"evidence\":[");
    for (int i = 0; i < 12; i++) {
        buf_puts(&body, i ? ",{\"excerpt\":\"" : "{\"excerpt\":\"");
        put_long(&body, 1500);
        buf_puts(&body, "\",\"log_url\":\"https://x.example/");
        for (int j = 0; j < (i ? 450 : 600); j++)
            buf_putc(&body, 'u');
        buf_puts(&body, "\"}");
    }
    buf_puts(&body, "]}}}");
    struct callback c = parse(body.ptr);
    json_t *v = verdict_of(&c), *evidence = json_object_get(v, "evidence");
    assert_int_equal(strlen(text_of(v, "summary")), 2 * 1000);
    assert_int_equal(strlen(text_of(json_object_get(v, "suspected_upstream"), "reason")), 2 * 300);
    assert_true(strlen(c.triage_verdict) <= 16 * 1024);
    assert_int_equal(json_array_size(evidence), 5); /* of 2.5 KB each: what 16 KiB has room for */
    assert_int_equal(strlen(text_of(json_array_get(evidence, 0), "excerpt")), 2 * 1000);
    assert_null(json_object_get(json_array_get(evidence, 0), "log_url"));
    assert_non_null(json_object_get(json_array_get(evidence, 1), "log_url"));
    json_decref(v);
    callback_clear(&c);
    buf_clear(&body);
}

static void at_most_ten_rows_of_evidence_are_kept(void **state)
{
    (void)state;
#define ROW "{\"job\":\"j\"}"
    struct callback c = parse(VERDICT(",\"evidence\":[" ROW "," ROW "," ROW "," ROW "," ROW "," ROW
                                      "," ROW "," ROW "," ROW "," ROW "," ROW "]"));
    json_t *v = verdict_of(&c);
    assert_int_equal(json_array_size(json_object_get(v, "evidence")), 10);
    json_decref(v);
    callback_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_is_kept_without_what_is_unknown),
        cmocka_unit_test(a_structural_fault_drops_the_verdict_and_nothing_else),
        cmocka_unit_test(a_long_verdict_is_cut),
        cmocka_unit_test(at_most_ten_rows_of_evidence_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

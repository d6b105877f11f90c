/* The steps of callback.h, and the record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "ingest/callback.h"

#define SHA "0123456789012345678901234567890123456789"

static struct answer answer;
static struct allowlist *list;

static int list_make(void **state)
{
    (void)state;
    struct why why;
    const char yaml[] = "L1: [org/one]\n"
                        "L2:\n"
                        "  - Org/Two\n"
                        "  - org/pulls: {events: [pull_request]}\n"
                        "L4:\n"
                        "  - org/four: someone\n";
    return allowlist_parse(&list, "allowlist.yml", str_of(yaml), &why);
}

static int list_drop(void **state)
{
    (void)state;
    allowlist_free(list);
    return 0;
}

/* ---- 1 -------------------------------------------------------------------------------------- */

static void token_is_taken_from_a_bearer_header(void **state)
{
    (void)state;
    struct str token;
    assert_true(callback_bearer(STR_LIT("Bearer a.b.c"), &token, &answer));
    assert_true(str_is(token, "a.b.c"));
    assert_true(callback_bearer(STR_LIT("bearer  a.b.c "), &token, &answer));
    assert_true(str_is(token, "a.b.c"));
}

static void no_bearer_token_is_401(void **state)
{
    (void)state;
    static const char *const bad[] = { NULL, "", "Bearer", "Bearer ", "Basic YTpi", "a.b.c" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct str token;
        assert_false(callback_bearer(str_of(bad[i]), &token, &answer));
        assert_int_equal(answer.status, 401);
    }
}

/* ---- 2, 6 ----------------------------------------------------------------------------------- */

#define BODY(event_type, status, more)                                                             \
    "{\"event_type\":\"" event_type "\",\"delivery_id\":\"d-1\",\"payload\":{\"x\":1},"            \
    "\"workflow\":{\"status\":\"" status "\",\"name\":\"CI\",\"run_id\":42" more "}}"

static void body_that_is_no_json_object_is_400_at_once(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "[]", "{", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct callback_body body = { 0 };
        assert_false(callback_body_read(str_of(bad[i]), STR_NONE, &body, &answer));
        assert_int_equal(answer.status, 400);
        assert_string_equal(answer.reason, "body_malformed");
    }
}

static const struct allowlist_entry *entry_of(const char *repo)
{
    return allowlist_find(list, str_of(repo));
}

static bool check_fields(const char *text, const char *repo)
{
    struct callback_body body = { 0 };
    if (!callback_body_read(str_of(text), STR_NONE, &body, &answer))
        fail_msg("%s: %s", text, answer.text);
    bool good = callback_fields_check(&body, entry_of(repo), &answer);
    callback_body_clear(&body);
    return good;
}

static void fields_are_checked_later_than_json(void **state)
{
    (void)state;
    assert_false(check_fields("{}", "org/two"));
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer.reason, "field_bad");
    assert_false(check_fields(BODY("pull_request", "queued", ""), "org/two"));
    assert_int_equal(answer.status, 400);
    assert_false(
        check_fields(BODY("pull_request", "completed", ",\"conclusion\":\"won\""), "org/two"));
    assert_int_equal(answer.status, 400);
    assert_true(check_fields(BODY("pull_request", "completed", ""), "org/two"));
    assert_true(check_fields(BODY("pull_request", "in_progress", ""), "org/two"));
    assert_true(
        check_fields(BODY("pull_request", "completed", ",\"conclusion\":\"success\""), "org/two"));
}

static void self_reports_are_completed_only(void **state)
{
    (void)state;
    assert_true(check_fields(BODY("nightly", "completed", ",\"conclusion\":null"), "org/two"));
    assert_true(
        check_fields(BODY("periodic", "completed", ",\"conclusion\":\"failure\""), "org/two"));
    assert_false(check_fields(BODY("nightly", "in_progress", ""), "org/two"));
    assert_int_equal(answer.status, 400);
}

static void self_report_of_a_repo_that_has_no_nightly_is_ignored(void **state)
{
    (void)state;
    assert_false(check_fields(BODY("nightly", "completed", ",\"conclusion\":null"), "org/pulls"));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.text, CALLBACK_IGNORED("event_not_wanted"));
}

/* ---- 4 -------------------------------------------------------------------------------------- */

static void without_an_allowlist_it_is_503(void **state)
{
    (void)state;
    const struct allowlist_entry *entry;
    assert_false(callback_admit(NULL, STR_LIT("org/two"), &entry, &answer));
    assert_int_equal(answer.status, 503);
    assert_true(answer.retry_after_s > 0);
}

static void unknown_and_level_1_repos_are_ignored(void **state)
{
    (void)state;
    const struct allowlist_entry *entry;
    assert_false(callback_admit(list, STR_LIT("org/unknown"), &entry, &answer));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.text,
                        "{\"ok\":true,\"status\":\"ignored\",\"reason\":\"not_listed\"}");
    assert_false(callback_admit(list, STR_LIT("org/one"), &entry, &answer));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.text, CALLBACK_IGNORED("level_1"));
    assert_true(callback_admit(list, STR_LIT("ORG/two"), &entry, &answer));
    assert_true(str_is(entry->repo, "Org/Two"));
}

/* ---- the record ----------------------------------------------------------------------------- */

static void record_has_the_key_and_headers_of_the_design(void **state)
{
    (void)state;
    struct callback fields = { .delivery_id = "d-1" };
    const struct callback_origin origin = { .repo = STR_LIT("Org/Two"),
                                            .level = 2,
                                            .issuer = STR_LIT("https://issuer"),
                                            .run_attempt = STR_LIT("2"),
                                            .received_ms = 1763700000123 };
    struct provenance provenance = {
        .kind = PROVENANCE_TOKEN, .pr = 7, .head_sha = SHA, .dispatched_ms = 1763700000001
    };
    struct headers headers;
    headers_init(&headers);
    callback_to_headers(&fields, &origin, &provenance, &headers);
    char text[512] = "";
    for (size_t i = 0; i < headers.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s=%.*s ",
                 STR_ARG(headers.at[i].name), STR_ARG(headers.at[i].value));
    assert_string_equal(text, "repo=Org/Two level=L2 issuer=https://issuer run_attempt=2 "
                              "provenance=token delivery=d-1 pr=7 head_sha=" SHA
                              " dispatched_ms=1763700000001 received_ms=1763700000123 ");
    struct buf key;
    buf_init(&key, 300);
    callback_key(&key, &fields, origin.repo);
    assert_string_equal(buf_str(&key).ptr, "d-1/Org/Two");
    buf_clear(&key);
}

static void pending_record_leaves_out_what_is_not_known(void **state)
{
    (void)state;
    struct callback fields = { .delivery_id = "d-1" };
    const struct callback_origin origin = { .repo = STR_LIT("Org/Two"), .level = 2 };
    struct provenance provenance = { .kind = PROVENANCE_PENDING };
    struct headers headers;
    headers_init(&headers);
    callback_to_headers(&fields, &origin, &provenance, &headers);
    assert_true(str_is(headers_get(&headers, "provenance"), "pending"));
    assert_null(headers_get(&headers, "run_attempt").ptr);
    assert_null(headers_get(&headers, "pr").ptr);
    assert_null(headers_get(&headers, "head_sha").ptr);
    assert_null(headers_get(&headers, "dispatched_ms").ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_is_taken_from_a_bearer_header),
        cmocka_unit_test(no_bearer_token_is_401),
        cmocka_unit_test(body_that_is_no_json_object_is_400_at_once),
        cmocka_unit_test(fields_are_checked_later_than_json),
        cmocka_unit_test(self_reports_are_completed_only),
        cmocka_unit_test(self_report_of_a_repo_that_has_no_nightly_is_ignored),
        cmocka_unit_test(without_an_allowlist_it_is_503),
        cmocka_unit_test(unknown_and_level_1_repos_are_ignored),
        cmocka_unit_test(record_has_the_key_and_headers_of_the_design),
        cmocka_unit_test(pending_record_leaves_out_what_is_not_known),
    };
    return cmocka_run_group_tests(tests, list_make, list_drop);
}

/* POST /github/webhook: each rule a test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crypto/hmac.h"
#include "ingest/webhook.h"

#define SHA "0123456789012345678901234567890123456789"

static struct webhook_rules rules;
static struct webhook_record record;
static struct answer answer;
static char signature[80];

static int rules_make(void **state)
{
    (void)state;
    struct why why;
    rules.events.upstream_repo = STR_LIT("PyTorch/pytorch");
    rules.app_id = STR_LIT("12345");
    return signature_secrets_init(&rules.secrets, "new,old", &why);
}

static int rules_drop(void **state)
{
    (void)state;
    signature_secrets_clear(&rules.secrets);
    return 0;
}

/* A request as GitHub makes it, signed. */
static struct webhook_head head_for(const char *event, struct str body)
{
    char hex[SHA256_HEX_SIZE];
    hmac_sha256_hex(STR_LIT("old"), body, hex);
    snprintf(signature, sizeof(signature), "sha256=%s", hex);
    return (struct webhook_head){ .signature = str_of(signature),
                                  .event = str_of(event),
                                  .delivery = STR_LIT("d-1"),
                                  .target_type = STR_LIT("integration"),
                                  .target_id = STR_LIT("12345"),
                                  .content_type = STR_LIT("application/json") };
}

static bool checked(const struct webhook_head *head, const char *body)
{
    answer = (struct answer){ 0 };
    return webhook_check(&rules, head, str_of(body), 1763700000123, &record, &answer);
}

static void assert_accepted(const char *event, const char *body)
{
    struct webhook_head head = head_for(event, str_of(body));
    if (!checked(&head, body))
        fail_msg("%s %s: %d %s", event, body, answer.status, answer.text);
    webhook_record_clear(&record);
}

static void assert_ignored(const char *event, const char *body)
{
    struct webhook_head head = head_for(event, str_of(body));
    if (checked(&head, body))
        fail_msg("%s %s: accepted", event, body);
    assert_int_equal(answer.status, 200);
    char text[96];
    snprintf(text, sizeof(text), "{\"ignored\":true,\"reason\":\"%s\"}", answer.reason);
    assert_string_equal(answer.text, text);
}

static void assert_refused(const struct webhook_head *head, const char *body, int status,
                           const char *reason)
{
    if (checked(head, body))
        fail_msg("%s: accepted", body);
    assert_string_equal(answer.reason, reason);
    assert_int_equal(answer.status, status);
}

#define REPO "\"repository\":{\"full_name\":\"pytorch/PyTorch\"}"
#define PULL(action)                                                                               \
    "{\"action\":\"" action "\",\"pull_request\":{\"number\":7,\"head\":{\"sha\":\"" SHA           \
    "\"},\"updated_at\":\"2026-11-21T03:20:00Z\"}," REPO "}"
#define LABEL(action, name)                                                                        \
    "{\"action\":\"" action "\",\"label\":{\"name\":\"" name "\"},"                                \
    "\"pull_request\":{\"number\":7,\"head\":{\"sha\":\"" SHA "\"},"                               \
    "\"updated_at\":\"2026-11-21T03:20:00Z\"}," REPO "}"
#define PUSHED(ref, deleted)                                                                       \
    "{\"ref\":\"" ref "\",\"after\":\"" SHA "\",\"deleted\":" deleted "," REPO "}"
#define CHECK(kind, action)                                                                        \
    "{\"action\":\"" action "\",\"" kind "\":{\"id\":9,\"head_sha\":\"" SHA "\"}," REPO "}"

/* ---- 1: signature --------------------------------------------------------------------------- */

static void no_signature_is_400(void **state)
{
    (void)state;
    struct webhook_head head = head_for("pull_request", STR_LIT(PULL("opened")));
    head.signature = STR_NONE;
    assert_refused(&head, PULL("opened"), 400, "signature_missing");
    assert_false(webhook_head_check(&rules, &head, &answer));
}

static void signature_of_another_form_is_401_before_the_body_is_read(void **state)
{
    (void)state;
    struct webhook_head head = head_for("pull_request", STR_LIT(PULL("opened")));
    head.signature = STR_LIT("sha1=0123");
    assert_false(webhook_head_check(&rules, &head, &answer));
    assert_int_equal(answer.status, 401);
}

static void bad_signature_is_401_for_every_event_before_anything_is_parsed(void **state)
{
    (void)state;
    static const char *const events[] = { "pull_request", "push", "ping", "issues" };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        struct webhook_head head = head_for(events[i], STR_LIT("{}"));
        head.delivery = STR_NONE;
        assert_refused(&head, "{} ", 401, "signature_bad");
        assert_refused(&head, "not JSON", 401, "signature_bad");
    }
}

static void any_configured_secret_signs(void **state)
{
    (void)state;
    struct webhook_head head = head_for("pull_request", STR_NONE);
    char hex[SHA256_HEX_SIZE];
    hmac_sha256_hex(STR_LIT("new"), STR_LIT(PULL("opened")), hex);
    snprintf(signature, sizeof(signature), "sha256=%s", hex);
    assert_true(checked(&head, PULL("opened")));
    webhook_record_clear(&record);
}

static void webhook_of_another_app_is_401(void **state)
{
    (void)state;
    struct webhook_head head = head_for("pull_request", STR_LIT(PULL("opened")));
    head.target_id = STR_LIT("999");
    assert_refused(&head, PULL("opened"), 401, "other_app");
    head.target_type = STR_LIT("repository"); /* then the number is no App's */
    assert_true(checked(&head, PULL("opened")));
    webhook_record_clear(&record);
    head.target_type = STR_LIT("integration");
    head.target_id = STR_NONE;
    assert_true(checked(&head, PULL("opened")));
    webhook_record_clear(&record);
}

/* ---- 2: event, delivery --------------------------------------------------------------------- */

static void other_events_are_ignored(void **state)
{
    (void)state;
    assert_ignored("issues", "not even JSON");
    assert_ignored("workflow_run", PULL("opened"));
    struct webhook_head head = head_for("issues", STR_LIT("{}"));
    head.delivery = STR_LIT("not valid!");
    assert_false(checked(&head, "{}"));
    assert_int_equal(answer.status, 200);
}

static void no_event_is_400(void **state)
{
    (void)state;
    struct webhook_head head = head_for("push", STR_LIT("{}"));
    head.event = STR_NONE;
    assert_refused(&head, "{}", 400, "event_missing");
}

static void delivery_must_be_well_formed(void **state)
{
    (void)state;
    static const char *const bad[] = { NULL, "", "a b", "a/b",
                                       "01234567890123456789012345678901234567890123456789012345678"
                                       "901234" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct webhook_head head = head_for("pull_request", STR_LIT("not JSON"));
        head.delivery = str_of(bad[i]);
        assert_refused(&head, "not JSON", 400, "delivery_malformed");
    }
}

/* ---- 3: body -------------------------------------------------------------------------------- */

static void body_must_be_a_json_object(void **state)
{
    (void)state;
    static const char *const bad[] = { "",     "not JSON",
                                       "[]",   "{",
                                       "{} x", "{\"repository\":{\"full_name\":\"a\\u0000\"}}" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct webhook_head head = head_for("pull_request", str_of(bad[i]));
        assert_refused(&head, bad[i], 400, "body_malformed");
    }
}

static void other_repositories_are_ignored(void **state)
{
    (void)state;
    assert_ignored("pull_request", "{\"repository\":{\"full_name\":\"pytorch/vision\"}}");
    assert_ignored("pull_request", "{}");
    assert_accepted("pull_request", PULL("opened"));           /* in any case of letters */
    assert_ignored("pull_request", "{\"title\":\"\\u0000\"}"); /* of what nobody reads */
}

static void form_is_decoded_and_its_json_becomes_the_value(void **state)
{
    (void)state;
    const char body[] = "payload=%7B%22action%22:%22rerequested%22,%22check_suite%22:%7B%22id%22:9,"
                        "%22head_sha%22:%22" SHA "%22%7D,%22repository%22:%7B%22full_name%22:"
                        "%22pytorch/pytorch%22%7D%7D";
    struct webhook_head head = head_for("check_suite", str_of(body));
    head.content_type = STR_LIT("application/x-www-form-urlencoded");
    assert_true(checked(&head, body));
    assert_string_equal(record.decoded, "{\"action\":\"rerequested\",\"check_suite\":{\"id\":9,"
                                        "\"head_sha\":\"" SHA "\"},\"repository\":{\"full_name\":"
                                        "\"pytorch/pytorch\"}}");
    assert_int_equal(record.decoded_len, strlen(record.decoded));
    webhook_record_clear(&record);
    head = head_for("push", STR_LIT("x=1"));
    head.content_type = STR_LIT("application/x-www-form-urlencoded");
    assert_refused(&head, "x=1", 400, "body_malformed");
}

/* ---- 4: actions ----------------------------------------------------------------------------- */

static void four_pull_request_actions_are_passed_on(void **state)
{
    (void)state;
    assert_accepted("pull_request", PULL("opened"));
    assert_accepted("pull_request", PULL("reopened"));
    assert_accepted("pull_request", PULL("synchronize"));
    assert_accepted("pull_request", PULL("closed"));
    assert_ignored("pull_request", PULL("edited"));
    assert_ignored("pull_request", PULL("assigned"));
    assert_ignored("pull_request", PULL("labeled"));
}

static void labels_count_when_they_are_ours(void **state)
{
    (void)state;
    assert_accepted("pull_request", LABEL("labeled", "ciflow/crcr/npu"));
    assert_accepted("pull_request", LABEL("unlabeled", "ciflow/crcr/npu"));
    assert_accepted("pull_request", LABEL("labeled", "CIFlow/crcr/NPU"));
    assert_accepted("pull_request", LABEL("labeled", "crcr-auto-demotion"));
    assert_accepted("pull_request", LABEL("unlabeled", "CRCR-Auto-Demotion"));
    assert_ignored("pull_request", LABEL("labeled", "ciflow/trunk"));
    assert_ignored("pull_request", LABEL("labeled", "ciflow/crcr/"));
}

static void every_push_counts_but_a_deletion(void **state)
{
    (void)state;
    assert_accepted("push", PUSHED("refs/heads/main", "false"));
    assert_accepted("push", PUSHED("refs/tags/v1", "false"));
    assert_ignored("push", PUSHED("refs/heads/main", "true"));
}

static void pushes_may_be_limited_to_some_refs(void **state)
{
    (void)state;
    rules.events.push_refs = STR_LIT("refs/heads/main, refs/heads/release/*, refs/tags/*/x/*-rc");
    assert_accepted("push", PUSHED("refs/heads/main", "false"));
    assert_accepted("push", PUSHED("refs/heads/release/2.9", "false"));
    assert_accepted("push", PUSHED("refs/heads/release/", "false"));
    assert_accepted("push", PUSHED("refs/tags/a/b/x/1-rc2-rc", "false"));
    assert_ignored("push", PUSHED("refs/heads/main2", "false"));
    assert_ignored("push", PUSHED("refs/heads/mai", "false"));
    assert_ignored("push", PUSHED("refs/heads/release", "false"));
    assert_ignored("push", PUSHED("refs/tags/a/x/1-rc2", "false"));
    assert_ignored("push", PUSHED("refs/heads/release/2.9", "true"));
    assert_accepted("pull_request", PULL("opened"));
    rules.events.push_refs = STR_LIT("*");
    assert_accepted("push", PUSHED("refs/heads/any", "false"));
    assert_ignored("push", "{\"deleted\":true," REPO "}");
    rules.events.push_refs = STR_NONE;
}

static void checks_count_when_they_are_asked_for_again(void **state)
{
    (void)state;
    assert_accepted("check_run", CHECK("check_run", "rerequested"));
    assert_accepted("check_suite", CHECK("check_suite", "rerequested"));
    assert_ignored("check_run", CHECK("check_run", "completed"));
    assert_ignored("check_suite", CHECK("check_suite", "requested"));
}

static void ping_is_ignored(void **state)
{
    (void)state;
    assert_ignored("ping", "{\"zen\":\"x\"," REPO "}");
    assert_ignored("ping", "{\"zen\":\"x\"}");
}

static void missing_field_of_an_event_of_ours_is_400(void **state)
{
    (void)state;
    const char body[] = "{\"action\":\"opened\",\"pull_request\":{\"number\":7}," REPO "}";
    struct webhook_head head = head_for("pull_request", str_of(body));
    assert_refused(&head, body, 400, "body_malformed");
    assert_non_null(strstr(answer.text, "pull_request.head.sha"));
}

/* ---- the record ----------------------------------------------------------------------------- */

static void record_has_the_key_and_headers_of_the_design(void **state)
{
    (void)state;
    struct webhook_head head = head_for("pull_request", STR_LIT(PULL("opened")));
    assert_true(checked(&head, PULL("opened")));
    assert_string_equal(buf_str(&record.key).ptr, "PyTorch/pytorch#7");
    assert_null(record.decoded);
    struct headers headers;
    headers_init(&headers);
    event_to_headers(&record.event, &headers);
    char text[512] = "";
    for (size_t i = 0; i < headers.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s=%.*s ",
                 STR_ARG(headers.at[i].name), STR_ARG(headers.at[i].value));
    assert_string_equal(text, "event=pull_request action=opened delivery=d-1 pr=7 head_sha=" SHA
                              " received_ms=1763700000123 source=webhook ");
    webhook_record_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_signature_is_400),
        cmocka_unit_test(signature_of_another_form_is_401_before_the_body_is_read),
        cmocka_unit_test(bad_signature_is_401_for_every_event_before_anything_is_parsed),
        cmocka_unit_test(any_configured_secret_signs),
        cmocka_unit_test(webhook_of_another_app_is_401),
        cmocka_unit_test(other_events_are_ignored),
        cmocka_unit_test(no_event_is_400),
        cmocka_unit_test(delivery_must_be_well_formed),
        cmocka_unit_test(body_must_be_a_json_object),
        cmocka_unit_test(other_repositories_are_ignored),
        cmocka_unit_test(form_is_decoded_and_its_json_becomes_the_value),
        cmocka_unit_test(four_pull_request_actions_are_passed_on),
        cmocka_unit_test(labels_count_when_they_are_ours),
        cmocka_unit_test(every_push_counts_but_a_deletion),
        cmocka_unit_test(pushes_may_be_limited_to_some_refs),
        cmocka_unit_test(checks_count_when_they_are_asked_for_again),
        cmocka_unit_test(ping_is_ignored),
        cmocka_unit_test(missing_field_of_an_event_of_ours_is_400),
        cmocka_unit_test(record_has_the_key_and_headers_of_the_design),
    };
    return cmocka_run_group_tests(tests, rules_make, rules_drop);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/task.h"

static struct outcome sample(void)
{
    struct task task = {
        .event = { .kind = EVENT_PUSH, .delivery = STR_LIT("d-1"), .head_sha = STR_LIT("abcdef0") },
        .repo = STR_LIT("org/a"),
        .level = 4,
        .kind = TASK_DISPATCH,
        .attempt = 1,
    };
    struct outcome o;
    outcome_init(&o, &task);
    o.outcome = OUTCOME_DISPATCHED;
    o.http_status = 204;
    o.latency_ms = 12;
    o.at_ms = 1700000000123;
    return o;
}

static void an_outcome_survives_its_json(void **state)
{
    (void)state;
    struct outcome in = sample(), out;
    struct buf json;
    struct why why;
    in.pr_number = 7;
    in.maybe_duplicate = MARK_CLAIM_EXPIRED;
    strcpy(in.error, "quote \" and \xc3\xa9 and newline \n");
    in.reason = REASON_BREAKER;
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &out, &why), OK);
    assert_string_equal(out.delivery_id, "d-1");
    assert_string_equal(out.repo, "org/a");
    assert_int_equal(out.level, 4);
    assert_string_equal(out.kind, "dispatch");
    assert_string_equal(out.event_type, "push");
    assert_string_equal(out.head_sha, "abcdef0");
    assert_int_equal(out.pr_number, 7);
    assert_int_equal(out.outcome, OUTCOME_DISPATCHED);
    assert_int_equal(out.http_status, 204);
    assert_int_equal(out.attempt, 1);
    assert_int_equal(out.latency_ms, 12);
    assert_string_equal(out.error, in.error);
    assert_int_equal(out.reason, REASON_BREAKER);
    assert_true(out.at_ms == in.at_ms);
    assert_int_equal(out.maybe_duplicate, MARK_CLAIM_EXPIRED);
    buf_clear(&json);
}

static void the_mark_of_older_outcomes_is_understood(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum task_mark mark;
    } table[] = {
        { "true", MARK_ANSWER_UNSEEN },
        { "false", MARK_NONE },
        { "null", MARK_NONE },
        { "\"no_claim\"", MARK_NO_CLAIM },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char json[256];
        struct outcome out;
        snprintf(json, sizeof(json),
                 "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"kind\":\"dispatch\",\"tier\":\"L1\","
                 "\"outcome\":\"dispatched\",\"at\":\"2026-11-24T00:00:00Z\","
                 "\"maybe_duplicate\":%s}",
                 table[i].json);
        assert_int_equal(outcome_from_json(str_of(json), &out, NULL), OK);
        assert_int_equal(out.maybe_duplicate, table[i].mark);
    }
}

static void the_json_has_the_fields_of_the_contract(void **state)
{
    (void)state;
    static const char *const fields[] = { "delivery_id", "repo",      "tier",       "kind",
                                          "event_type",  "pr_number", "head_sha",   "outcome",
                                          "http_status", "attempt",   "latency_ms", "error",
                                          "at" };
    struct outcome in = sample();
    struct buf json;
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    json_t *root = json_loads(json.ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_non_null(json_object_get(root, fields[i]));
    assert_string_equal(json_string_value(json_object_get(root, "tier")), "L4");
    assert_string_equal(json_string_value(json_object_get(root, "at")), "2023-11-14T22:13:20.123Z");
    assert_true(json_is_null(json_object_get(root, "pr_number")));
    assert_true(json_is_null(json_object_get(root, "error")));
    assert_true(json_is_null(json_object_get(root, "maybe_duplicate")));
    json_decref(root);
    buf_clear(&json);
}

static void only_what_is_no_webhook_names_its_source(void **state)
{
    (void)state;
    static const char *const sources[][2] = { { "webhook", "" }, { "redelivered", "redelivered" } };
    for (size_t i = 0; i < 2; i++) {
        const struct task task = { .event = { .kind = EVENT_PUSH,
                                              .delivery = STR_LIT("d-1"),
                                              .source = str_of(sources[i][0]) },
                                   .repo = STR_LIT("org/a"),
                                   .level = 4 };
        struct outcome in, out;
        struct buf json;
        outcome_init(&in, &task);
        buf_init(&json, 4096);
        outcome_to_json(&in, &json);
        assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
        assert_string_equal(out.source, sources[i][1]);
        buf_clear(&json);
    }
}

static void the_outcome_of_a_rerun_names_its_run(void **state)
{
    (void)state;
    const struct task task = { .event = { .kind = EVENT_CHECK_RUN, .delivery = STR_LIT("d-1") },
                               .repo = STR_LIT("org/a"),
                               .level = 4,
                               .kind = TASK_RERUN_FAILED,
                               .run_id = STR_LIT("987654") };
    struct outcome in, out;
    struct buf json;
    outcome_init(&in, &task);
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
    assert_string_equal(out.kind, "rerun_failed");
    assert_string_equal(out.run_id, "987654");
    buf_clear(&json);
}

static void the_outcome_of_a_replay_again_says_so_and_moves_no_lane(void **state)
{
    (void)state;
    struct task task = { .event = { .kind = EVENT_PULL_REQUEST,
                                    .delivery = STR_LIT("d-1"),
                                    .again = STR_LIT("ab12cd34") },
                         .repo = STR_LIT("org/a"),
                         .level = 4,
                         .kind = TASK_DISPATCH,
                         .event_key = STR_LIT("pytorch/pytorch#1") };
    struct outcome in, out;
    struct buf json;
    outcome_init(&in, &task);
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
    assert_string_equal(out.again, "ab12cd34");
    assert_string_equal(out.seq, "");
    task.event.again = STR_NONE;
    outcome_init(&in, &task);
    assert_string_not_equal(in.seq, "");
    buf_reset(&json);
    outcome_to_json(&in, &json);
    assert_true(str_find_str(buf_str(&json), STR_LIT("again")) < 0);
    buf_clear(&json);
}

static void the_outcome_tells_the_events_action_and_arrival(void **state)
{
    (void)state;
    const struct task task = { .event = { .kind = EVENT_PULL_REQUEST,
                                          .delivery = STR_LIT("d-1"),
                                          .action = STR_LIT("closed"),
                                          .received_ms = 1700000000001 },
                               .repo = STR_LIT("org/a"),
                               .level = 4,
                               .kind = TASK_DISPATCH };
    struct outcome in, out;
    struct buf json;
    outcome_init(&in, &task);
    in.next_ms = 1700000009999;
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
    assert_true(out.next_ms == 1700000009999);
    assert_string_equal(out.action, "closed");
    assert_true(out.received_ms == 1700000000001);
    buf_clear(&json);
}

static void an_outcome_of_before_these_fields_is_read(void **state)
{
    (void)state;
    struct outcome out;
    assert_int_equal(outcome_from_json(STR_LIT("{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"tier\":"
                                               "\"L1\",\"kind\":\"dispatch\",\"outcome\":"
                                               "\"failed\",\"at\":\"2023-11-14T22:13:20Z\"}"),
                                       &out, NULL),
                     OK);
    assert_string_equal(out.run_id, "");
    assert_string_equal(out.action, "");
    assert_int_equal(out.received_ms, 0);
}

static void invalid_utf8_in_an_error_still_gives_json(void **state)
{
    (void)state;
    struct outcome in = sample(), out;
    struct buf json;
    strcpy(in.error, "bad \xff byte");
    buf_init(&json, 4096);
    outcome_to_json(&in, &json);
    assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
    buf_clear(&json);
}

static void every_kind_has_a_name_and_is_read_back(void **state)
{
    (void)state;
    for (int kind = OUTCOME_DISPATCHED; kind <= OUTCOME_DUPLICATE; kind++) {
        struct outcome in = sample(), out;
        struct buf json;
        in.outcome = (enum outcome_kind)kind;
        buf_init(&json, 4096);
        outcome_to_json(&in, &json);
        assert_non_null(strstr(json.ptr, outcome_kind_name(in.outcome)));
        assert_int_equal(outcome_from_json(buf_str(&json), &out, NULL), OK);
        assert_int_equal(out.outcome, kind);
        buf_clear(&json);
    }
}

static void unreadable_outcomes_are_refused(void **state)
{
    (void)state;
#define REST "\"kind\":\"dispatch\",\"tier\":\"L1\",\"at\":\"2023-11-14T22:13:20Z\""
#define GOOD "\"delivery_id\":\"d\",\"repo\":\"o/r\",\"outcome\":\"failed\","
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{" GOOD "\"kind\":\"dispatch\",\"tier\":\"L9\",\"at\":\"2023-11-14T22:13:20Z\"}",
        "{" GOOD "\"kind\":\"dispatch\",\"tier\":\"L1\",\"at\":\"noon\"}",
        "{" GOOD "\"kind\":\"dispatch\",\"tier\":\"L1\"}",
        "{\"repo\":\"o/r\",\"outcome\":\"failed\"," REST "}",
        "{\"delivery_id\":\"\",\"repo\":\"o/r\",\"outcome\":\"failed\"," REST "}",
        "{\"delivery_id\":5,\"repo\":\"o/r\",\"outcome\":\"failed\"," REST "}",
        "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"outcome\":\"won\"," REST "}",
        "{" GOOD "\"http_status\":\"204\"," REST "}",
        "{" GOOD "\"http_status\":99999999999," REST "}",
        "{" GOOD GOOD REST "}",
        "{" GOOD REST,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct outcome out;
        struct why why = { "" };
        if (outcome_from_json(str_of(bad[i]), &out, &why) != ERR_REFUSE)
            fail_msg("taken: %s", bad[i]);
        assert_true(why.text[0]);
    }
    struct outcome out;
    assert_int_equal(outcome_from_json(STR_LIT("{" GOOD REST "}"), &out, NULL), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outcome_survives_its_json),
        cmocka_unit_test(the_mark_of_older_outcomes_is_understood),
        cmocka_unit_test(the_json_has_the_fields_of_the_contract),
        cmocka_unit_test(only_what_is_no_webhook_names_its_source),
        cmocka_unit_test(the_outcome_of_a_rerun_names_its_run),
        cmocka_unit_test(the_outcome_of_a_replay_again_says_so_and_moves_no_lane),
        cmocka_unit_test(the_outcome_tells_the_events_action_and_arrival),
        cmocka_unit_test(an_outcome_of_before_these_fields_is_read),
        cmocka_unit_test(invalid_utf8_in_an_error_still_gives_json),
        cmocka_unit_test(every_kind_has_a_name_and_is_read_back),
        cmocka_unit_test(unreadable_outcomes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/event.h"
#include "common/model/json_scan.h"

/* ---- real payloads -------------------------------------------------------------------------- */

static char *file_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *text = malloc(1 << 20);
    *len = fread(text, 1, 1 << 20, file);
    fclose(file);
    return text;
}

static struct event_facts facts_of(enum event_kind kind, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), SOURCE_DIR "/tests/payloads/%s/%s", event_kind_name(kind), name);
    size_t len;
    char *text = file_read(path, &len);
    struct event_facts facts;
    struct why why = { "" };
    enum err err = event_scan(kind, (struct str){ text, len }, &facts, &why);
    free(text);
    if (err)
        fail_msg("%s: %s", path, why.text);
    return facts;
}

static void assert_key(enum event_kind kind, const struct event_facts *facts, const char *expected)
{
    struct buf key;
    buf_init(&key, 4096);
    event_key(&key, kind, facts);
    assert_string_equal(buf_str(&key).ptr, expected);
    buf_clear(&key);
}

static void every_real_payload_is_read(void **state)
{
    (void)state;
    static const enum event_kind kinds[] = { EVENT_PULL_REQUEST, EVENT_PUSH, EVENT_CHECK_RUN,
                                             EVENT_CHECK_SUITE, EVENT_PING };
    size_t total = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        char pattern[512];
        snprintf(pattern, sizeof(pattern), SOURCE_DIR "/tests/payloads/%s/*.json",
                 event_kind_name(kinds[k]));
        glob_t found;
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++, total++)
            (void)facts_of(kinds[k], strrchr(found.gl_pathv[i], '/') + 1);
        globfree(&found);
    }
    assert_true(total >= 50);
}

static void pull_request_facts_are_found(void **state)
{
    (void)state;
    struct event_facts facts = facts_of(EVENT_PULL_REQUEST, "labeled.json");
    assert_string_equal(facts.repo, "Codertocat/Hello-World");
    assert_string_equal(facts.default_branch, "master");
    assert_string_equal(facts.action, "labeled");
    assert_int_equal(facts.pr, 2);
    assert_string_equal(facts.head_sha, "ec26c3e57ca3a959ca5aad62de7213c562f8c821");
    assert_string_equal(facts.updated_at, "2019-05-15T15:20:35Z");
    assert_string_equal(facts.label, "bug");
    assert_int_equal(facts.n_labels, 1);
    assert_string_equal(facts.labels[0], "bug");
    assert_key(EVENT_PULL_REQUEST, &facts, "Codertocat/Hello-World#2");
}

static void words_for_people_cost_no_event(void **state)
{
    (void)state;
    static const char *const titles[][2] = { { "Fix the build", "Fix the build" },
                                             { "before \\u0000 after",
                                               "before \xef\xbf\xbd after" },
                                             { "half \\ud83d", "half \xef\xbf\xbd" } };
    struct event_facts facts;
    struct why why;
    char text[1024];
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text),
                 "{\"action\":\"opened\",\"pull_request\":{\"number\":7,\"title\":\"%s\","
                 "\"user\":{\"login\":\"octocat\"},\"updated_at\":\"2026-11-21T03:20:00Z\","
                 "\"head\":{\"sha\":\"ec26c3e57ca3a959ca5aad62de7213c562f8c821\"}}}",
                 titles[i][0]);
        assert_int_equal(event_scan(EVENT_PULL_REQUEST, str_of(text), &facts, &why), OK);
        assert_string_equal(facts.title, titles[i][1]);
        assert_string_equal(facts.author, "octocat");
    }
}

static void push_facts_are_found(void **state)
{
    (void)state;
    struct event_facts facts = facts_of(EVENT_PUSH, "5.json");
    assert_string_equal(facts.ref, "refs/heads/master");
    assert_false(facts.deleted);
    assert_int_equal(facts.pr, 0);
    assert_int_equal(strlen(facts.head_sha), 40);
    assert_key(EVENT_PUSH, &facts, "Codertocat/Hello-World@refs/heads/master");
    assert_true(facts_of(EVENT_PUSH, "2.json").deleted);
}

static void check_facts_are_found(void **state)
{
    (void)state;
    struct event_facts facts = facts_of(EVENT_CHECK_RUN, "rerequested.json");
    assert_string_equal(facts.action, "rerequested");
    assert_string_equal(facts.check_name, "randscape");
    assert_int_equal(facts.app_id, 2);
    assert_true(facts.check_run_id > 0);
    assert_true(facts.check_suite_id > 0);
    facts = facts_of(EVENT_CHECK_SUITE, "rerequested.json");
    assert_int_equal(facts.app_id, 29310);
    assert_true(facts.check_suite_id > 0);
    char expected[512];
    snprintf(expected, sizeof(expected), "Codertocat/Hello-World@%s", facts.head_sha);
    assert_key(EVENT_CHECK_SUITE, &facts, expected);
}

/* ---- rules ---------------------------------------------------------------------------------- */

#define SHA "0123456789012345678901234567890123456789"

static void ciflow_tag_push_belongs_to_its_pull_request(void **state)
{
    (void)state;
    struct event_facts facts;
    struct why why;
    struct str body = STR_LIT("{\"ref\":\"refs/tags/ciflow/trunk/42\",\"after\":\"" SHA
                              "\",\"repository\":{\"full_name\":\"pytorch/pytorch\"}}");
    assert_int_equal(event_scan(EVENT_PUSH, body, &facts, &why), OK);
    assert_int_equal(facts.pr, 42);
    assert_key(EVENT_PUSH, &facts, "pytorch/pytorch#42");
}

static void assert_lacks(enum event_kind kind, const char *body, const char *field)
{
    struct event_facts facts;
    struct why why = { "" };
    assert_int_equal(event_scan(kind, str_of(body), &facts, &why), ERR_REFUSE);
    if (!strstr(why.text, field))
        fail_msg("'%s' does not name %s", why.text, field);
}

static void missing_and_mistyped_fields_are_named(void **state)
{
    (void)state;
    assert_lacks(EVENT_PULL_REQUEST, "{}", "action");
    assert_lacks(EVENT_PULL_REQUEST, "{\"action\":\"opened\",\"pull_request\":{\"number\":\"2\"}}",
                 "pull_request.number");
    assert_lacks(EVENT_PULL_REQUEST, "{\"action\":\"opened\",\"pull_request\":{\"number\":-2}}",
                 "pull_request.number");
    assert_lacks(EVENT_PUSH, "{\"ref\":7}", "ref");
    assert_lacks(EVENT_PUSH, "{\"ref\":\"r\",\"after\":\"not-hex\"}", "hex");
    assert_lacks(EVENT_PUSH,
                 "{\"ref\":\"r\",\"after\":\"" SHA "\",\"repository\":{\"full_name\":\"x\"}}",
                 "full_name");
    assert_lacks(EVENT_PUSH, "[]", "object");
}

static void too_long_counts_as_missing(void **state)
{
    (void)state;
    char body[1024];
    snprintf(body, sizeof(body), "{\"after\":\"" SHA "\",\"ref\":\"%0600d\"}", 0);
    assert_lacks(EVENT_PUSH, body, "ref");
}

static void reading_alone_asks_for_no_field(void **state)
{
    (void)state;
    struct event_facts facts;
    struct why why;
    assert_int_equal(event_read(EVENT_PULL_REQUEST, STR_LIT("{\"action\":3}"), &facts, &why), OK);
    assert_string_equal(facts.action, "");
    assert_int_equal(event_read(EVENT_PULL_REQUEST, STR_LIT("{"), &facts, &why), ERR_REFUSE);
}

static void labels_beyond_the_limit_are_left_out(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body, 1 << 16);
    buf_puts(&body, "{\"pull_request\":{\"labels\":[");
    for (int i = 0; i < EVENT_MAX_LABELS + 5; i++)
        buf_printf(&body, "%s{\"name\":\"l%d\"}", i > 0 ? "," : "", i);
    buf_puts(&body, "]}}");
    struct event_facts facts;
    struct why why;
    assert_int_equal(event_read(EVENT_PULL_REQUEST, buf_str(&body), &facts, &why), OK);
    assert_int_equal(facts.n_labels, EVENT_MAX_LABELS);
    assert_string_equal(facts.labels[99], "l99");
    buf_clear(&body);
}

static void push_that_touches_a_file_is_seen(void **state)
{
    (void)state;
    struct str body = STR_LIT("{\"commits\":[{\"added\":[],\"modified\":[\"a/b\"]},{\"removed\":"
                              "[\"c\"]}],\"head_commit\":{\"added\":[\"d\"]}}");
    assert_true(event_push_touches(body, "a/b"));
    assert_true(event_push_touches(body, "c"));
    assert_true(event_push_touches(body, "d"));
    assert_false(event_push_touches(body, "a"));
    assert_true(event_push_touches(
        STR_LIT("{\"commits\":[{\"added\":[\"\\u0000\",\"\\ud800\",\"a\"]}]}"), "a"));
    assert_false(event_push_touches(STR_LIT("{"), "a"));
    assert_false(event_push_touches(STR_LIT("{\"head_commit\":null}"), "a"));
}

/* ---- headers -------------------------------------------------------------------------------- */

static struct event an_event(void)
{
    return (struct event){ .kind = EVENT_PULL_REQUEST,
                           .action = STR_LIT("opened"),
                           .delivery = STR_LIT("d-1"),
                           .head_sha = STR_LIT(SHA),
                           .source = STR_LIT("webhook"),
                           .pr = 7,
                           .received_ms = 1763700000000 };
}

static void headers_round_trip_in_the_order_of_the_design(void **state)
{
    (void)state;
    struct event event = an_event(), back;
    struct headers headers;
    headers_init(&headers);
    event_to_headers(&event, &headers);
    static const char *const names[] = { "event",    "action",      "delivery", "pr",
                                         "head_sha", "received_ms", "source" };
    assert_int_equal(headers.n, 7);
    for (size_t i = 0; i < headers.n; i++)
        assert_true(str_is(headers.at[i].name, names[i]));
    struct why why;
    assert_int_equal(event_from_headers(&back, &headers, &why), OK);
    assert_int_equal(back.kind, EVENT_PULL_REQUEST);
    assert_int_equal(back.pr, 7);
    assert_int_equal(back.received_ms, 1763700000000);
    assert_true(str_is(back.action, "opened"));
    assert_true(str_is(back.source, "webhook"));
}

static void push_has_neither_action_nor_number(void **state)
{
    (void)state;
    struct event event = an_event(), back;
    event.kind = EVENT_PUSH;
    event.action = STR_NONE;
    event.pr = 0;
    struct headers headers;
    headers_init(&headers);
    event_to_headers(&event, &headers);
    assert_int_equal(headers.n, 5);
    struct why why;
    assert_int_equal(event_from_headers(&back, &headers, &why), OK);
    assert_int_equal(back.pr, 0);
    assert_null(back.action.ptr);
}

static void a_replay_again_is_said_in_its_header_and_old_records_have_none(void **state)
{
    (void)state;
    struct event event = an_event(), back;
    struct headers headers;
    struct why why;
    headers_init(&headers);
    event_to_headers(&event, &headers);
    assert_int_equal(event_from_headers(&back, &headers, &why), OK);
    assert_null(back.again.ptr);
    event.again = STR_LIT("ab12cd34");
    headers_init(&headers);
    event_to_headers(&event, &headers);
    assert_int_equal(event_from_headers(&back, &headers, &why), OK);
    assert_true(str_is(back.again, "ab12cd34"));
    headers_set(&headers, "again", STR_LIT("a|b"));
    assert_int_equal(event_from_headers(&back, &headers, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "again"));
}

static void every_needed_header_is_missed(void **state)
{
    (void)state;
    static const char *const names[] = { "event",    "action",      "delivery", "pr",
                                         "head_sha", "received_ms", "source" };
    struct event event = an_event(), back;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct headers headers;
        headers_init(&headers);
        event_to_headers(&event, &headers);
        headers_remove(&headers, names[i]);
        struct why why = { "" };
        assert_int_equal(event_from_headers(&back, &headers, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_real_payload_is_read),
        cmocka_unit_test(pull_request_facts_are_found),
        cmocka_unit_test(words_for_people_cost_no_event),
        cmocka_unit_test(push_facts_are_found),
        cmocka_unit_test(check_facts_are_found),
        cmocka_unit_test(ciflow_tag_push_belongs_to_its_pull_request),
        cmocka_unit_test(missing_and_mistyped_fields_are_named),
        cmocka_unit_test(too_long_counts_as_missing),
        cmocka_unit_test(reading_alone_asks_for_no_field),
        cmocka_unit_test(labels_beyond_the_limit_are_left_out),
        cmocka_unit_test(push_that_touches_a_file_is_seen),
        cmocka_unit_test(headers_round_trip_in_the_order_of_the_design),
        cmocka_unit_test(push_has_neither_action_nor_number),
        cmocka_unit_test(a_replay_again_is_said_in_its_header_and_old_records_have_none),
        cmocka_unit_test(every_needed_header_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

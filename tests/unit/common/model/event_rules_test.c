/* POST /github/webhook after the signature; the single rules are in ingest/webhook_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/event_rules.h"

#define SHA        "0123456789012345678901234567890123456789"
#define REPOSITORY "\"repository\":{\"full_name\":\"pytorch/pytorch\"}"

static const struct event_rules rules = { .upstream_repo = { "PyTorch/pytorch", 15 } };
static struct event_facts facts;
static const char *reason;
static struct why why;

static enum event_verdict checked(enum event_kind kind, const char *body)
{
    reason = "untouched";
    return event_classify(&rules, kind, str_of(body), &facts, &reason, &why);
}

static void an_accepted_body_gives_its_key_and_event(void **state)
{
    (void)state;
    struct buf key;
    assert_int_equal(checked(EVENT_PULL_REQUEST,
                             "{\"action\":\"opened\"," REPOSITORY ",\"pull_request\":{\"number\":7,"
                             "\"updated_at\":\"2026-11-21T03:20:00Z\",\"head\":{\"sha\":\"" SHA
                             "\"}}}"),
                     EVENT_ACCEPTED);
    assert_null(reason);
    struct event event = event_of_facts(EVENT_PULL_REQUEST, &facts);
    assert_true(str_is(event.action, "opened") && str_is(event.head_sha, SHA));
    assert_int_equal(event.pr, 7);
    assert_null(event.delivery.ptr);
    buf_init(&key, EVENT_KEY_MAX);
    event_key(&key, EVENT_PULL_REQUEST, &facts);
    assert_string_equal(key.ptr, "PyTorch/pytorch#7"); /* one spelling, one lane */
    buf_clear(&key);
}

static void an_event_without_an_action_has_none(void **state)
{
    (void)state;
    assert_int_equal(
        checked(EVENT_PUSH, "{\"ref\":\"refs/heads/main\",\"after\":\"" SHA "\"," REPOSITORY "}"),
        EVENT_ACCEPTED);
    assert_null(event_of_facts(EVENT_PUSH, &facts).action.ptr);
}

static void a_body_is_ignored_for_a_reason(void **state)
{
    (void)state;
    assert_int_equal(checked(EVENT_PUSH, "{\"repository\":{\"full_name\":\"else/where\"}}"),
                     EVENT_IGNORED);
    assert_string_equal(reason, "other_repository");
    assert_int_equal(checked(EVENT_PULL_REQUEST, "{\"action\":\"assigned\"," REPOSITORY "}"),
                     EVENT_IGNORED);
    assert_string_equal(reason, "other_action");
}

static void a_malformed_body_says_why(void **state)
{
    (void)state;
    assert_int_equal(checked(EVENT_PUSH, "{"), EVENT_MALFORMED);
    assert_string_equal(reason, "body_malformed");
    why.text[0] = 0;
    assert_int_equal(checked(EVENT_PULL_REQUEST, "{\"action\":\"opened\"," REPOSITORY "}"),
                     EVENT_MALFORMED);
    assert_non_null(strstr(why.text, "pull_request.number"));
}

/* What may not count is refused with any body; what may count is accepted with some. */
static void what_may_count_is_known_without_a_body(void **state)
{
    (void)state;
    assert_true(event_may_count(EVENT_PULL_REQUEST, STR_LIT("synchronize")));
    assert_true(event_may_count(EVENT_PULL_REQUEST, STR_LIT("unlabeled")));
    assert_true(event_may_count(EVENT_PUSH, STR_NONE));
    assert_true(event_may_count(EVENT_CHECK_RUN, STR_LIT("rerequested")));
    assert_true(event_may_count(EVENT_CHECK_SUITE, STR_LIT("rerequested")));
    assert_false(event_may_count(EVENT_PULL_REQUEST, STR_LIT("assigned")));
    assert_false(event_may_count(EVENT_PULL_REQUEST, STR_NONE));
    assert_false(event_may_count(EVENT_CHECK_RUN, STR_LIT("completed")));
    assert_false(event_may_count(EVENT_PING, STR_NONE));
    assert_false(event_may_count(EVENT_OTHER, STR_LIT("opened")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accepted_body_gives_its_key_and_event),
        cmocka_unit_test(an_event_without_an_action_has_none),
        cmocka_unit_test(a_body_is_ignored_for_a_reason),
        cmocka_unit_test(a_malformed_body_says_why),
        cmocka_unit_test(what_may_count_is_known_without_a_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

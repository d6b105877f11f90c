/* Which dispatch a callback belongs to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "ingest/provenance.h"

#define SHA    "0123456789012345678901234567890123456789"
#define NOW_MS INT64_C(1398701478000)

static struct callback fields = { .delivery_id = "d-1" };
static struct provenance provenance;
static struct answer answer;

static struct callback_token a_token(void)
{
    return (struct callback_token){
        .delivery = "d-1", .repo = "Org/Repo", .pr = 7, .head_sha = SHA, .dispatched_ms = 99
    };
}

static void token_gives_pull_request_commit_and_time(void **state)
{
    (void)state;
    struct callback_token token = a_token();
    assert_true(provenance_of_token(&fields, STR_LIT("org/repo"), &token, &provenance, &answer));
    assert_int_equal(provenance.kind, PROVENANCE_TOKEN);
    assert_int_equal(provenance.pr, 7);
    assert_string_equal(provenance.head_sha, SHA);
    assert_int_equal(provenance.dispatched_ms, 99);
}

static void token_of_another_delivery_is_403(void **state)
{
    (void)state;
    struct callback_token token = a_token();
    token.delivery[0] = 'x';
    assert_false(provenance_of_token(&fields, STR_LIT("org/repo"), &token, &provenance, &answer));
    assert_int_equal(answer.status, 403);
}

static void token_of_another_repo_is_403(void **state)
{
    (void)state;
    struct callback_token token = a_token();
    assert_false(provenance_of_token(&fields, STR_LIT("org/other"), &token, &provenance, &answer));
    assert_int_equal(answer.status, 403);
}

static bool check_lookup(enum lookup_result result, const char *delivery, int64_t now_ms)
{
    struct callback c = { 0 };
    str_copy(c.delivery_id, sizeof(c.delivery_id), str_of(delivery));
    struct dispatch_lookup lookup = { .result = result,
                                      .record = { .pr = 8, .head_sha = SHA, .dispatched_ms = 55 } };
    return provenance_of_lookup(&c, &lookup, now_ms, &provenance, &answer);
}

/* GitHub's documented example, version 1: made 2014-04-25T12:52:24.582Z. */
#define V1    "72d3162e-cc78-11e3-81ab-4c9367dc0958"
#define V1_MS INT64_C(1398430344582)

static void record_gives_what_was_dispatched(void **state)
{
    (void)state;
    assert_true(check_lookup(LOOKUP_FOUND, "d-1", NOW_MS));
    assert_int_equal(provenance.kind, PROVENANCE_RECORD);
    assert_int_equal(provenance.pr, 8);
    assert_string_equal(provenance.head_sha, SHA);
    assert_int_equal(provenance.dispatched_ms, 55);
}

static void redis_unavailable_or_view_inconsistent_is_pending(void **state)
{
    (void)state;
    assert_true(check_lookup(LOOKUP_UNAVAILABLE, "d-1", NOW_MS));
    assert_int_equal(provenance.kind, PROVENANCE_PENDING);
    assert_int_equal(provenance.pr, 0);
    assert_string_equal(provenance.head_sha, "");
    assert_true(check_lookup(LOOKUP_NO_EPOCH, "d-1", NOW_MS));
    assert_int_equal(provenance.kind, PROVENANCE_PENDING);
}

static void no_record_in_a_consistent_view_is_400(void **state)
{
    (void)state;
    assert_false(check_lookup(LOOKUP_NONE, "d-1", NOW_MS));
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer.text,
                        "no matching dispatch record, and the body has no callback_token: send "
                        "back the whole client_payload of the dispatch, unchanged");
    const struct callback with = { .delivery_id = "d-1", .callback_token = "a.b.c" }; /* no key */
    const struct dispatch_lookup none = { .result = LOOKUP_NONE };
    assert_false(provenance_of_lookup(&with, &none, NOW_MS, &provenance, &answer));
    assert_string_equal(answer.text, "no matching dispatch record");
}

static void record_may_be_late_within_60_s_of_the_delivery(void **state)
{
    (void)state;
    assert_true(check_lookup(LOOKUP_NONE, V1, V1_MS + 59999));
    assert_int_equal(provenance.kind, PROVENANCE_PENDING);
    assert_true(check_lookup(LOOKUP_NONE, V1, V1_MS - 5000));
    assert_false(check_lookup(LOOKUP_NONE, V1, V1_MS + 60000));
    assert_false(check_lookup(LOOKUP_NONE, V1, V1_MS - 60000));
}

static void delivery_time_is_read_from_version_1_ids_only(void **state)
{
    (void)state;
    int64_t ms = 0;
    assert_true(delivery_time(STR_LIT(V1), &ms));
    assert_int_equal(ms, V1_MS);
    assert_false(delivery_time(STR_LIT("72d3162e-cc78-41e3-81ab-4c9367dc0958"), &ms));
    assert_false(delivery_time(STR_LIT("72d3162g-cc78-11e3-81ab-4c9367dc0958"), &ms));
    assert_false(delivery_time(STR_LIT("00000000-0000-1000-81ab-4c9367dc0958"), &ms));
    assert_false(delivery_time(STR_LIT("d-1"), &ms));
}

static void self_reports_know_nothing(void **state)
{
    (void)state;
    provenance_of_self(&fields, &provenance);
    assert_int_equal(provenance.kind, PROVENANCE_SELF);
    assert_int_equal(provenance.pr, 0);
    assert_string_equal(provenance.head_sha, "");
}

static void a_self_report_claims_a_commit_and_nothing_else(void **state)
{
    (void)state;
    struct callback c = { .event_type = "periodic",
                          .delivery_id = SHA,
                          .commits = { "", "ABCDEFabcdefABCDEFabcdefABCDEFabcdefABCD" } };
    provenance_of_self(&c, &provenance);
    assert_int_equal(provenance.kind, PROVENANCE_SELF);
    assert_int_equal(provenance.pr, 0);
    assert_int_equal(provenance.dispatched_ms, 0);
    assert_string_equal(provenance.head_sha, "abcdefabcdefabcdefabcdefabcdefabcdefabcd");
    strcpy(c.event_type, "pull_request"); /* nobody asks; it would have none */
    provenance_of_self(&c, &provenance);
    assert_string_equal(provenance.head_sha, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_gives_pull_request_commit_and_time),
        cmocka_unit_test(token_of_another_delivery_is_403),
        cmocka_unit_test(token_of_another_repo_is_403),
        cmocka_unit_test(record_gives_what_was_dispatched),
        cmocka_unit_test(redis_unavailable_or_view_inconsistent_is_pending),
        cmocka_unit_test(no_record_in_a_consistent_view_is_400),
        cmocka_unit_test(record_may_be_late_within_60_s_of_the_delivery),
        cmocka_unit_test(delivery_time_is_read_from_version_1_ids_only),
        cmocka_unit_test(self_reports_know_nothing),
        cmocka_unit_test(a_self_report_claims_a_commit_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

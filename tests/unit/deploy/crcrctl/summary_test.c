#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "deploy/crcrctl/summary.h"

static struct topics topics;

static int set_up(void **state)
{
    struct why why;

    (void)state;
    return !topics_init(&topics, "crcr.", &why) ? 0 : -1;
}

static struct summary last;

static int tear_down(void **state)
{
    (void)state;
    summary_clear(&last);
    return 0;
}

/* A record of that topic with headers given as name, value, …, NULL; that of the name "key" is its
 * key. Its text is good until the next. */
static struct summary summarise(enum topic topic, const char *value, ...)
{
    struct record record = { .at = { topics.name[topic], 3, 17 },
                             .timestamp_ms = 1000,
                             .value = str_of(value) };
    const char *name;
    va_list list;

    headers_init(&record.headers);
    va_start(list, value);
    while ((name = va_arg(list, const char *)))
        headers_put(&record.headers, name, str_of(va_arg(list, const char *)));
    va_end(list);
    record.key = headers_get(&record.headers, "key");
    summary_clear(&last);
    summary_of(&last, &topics, &record);
    return last;
}

static void a_parked_record_says_why_and_where_it_came_from(void **state)
{
    (void)state;
    struct summary s =
        summarise(TOPIC_DLQ, "{}", "delivery", "d-1", "repos", "o/r", "tier", "L4", "source_topic",
                  "crcr.dispatch.l4", "error", "HTTP 404", "class", "refused", NULL);
    assert_string_equal(s.outcome, "parked");
    assert_string_equal(s.detail, "refused from crcr.dispatch.l4: HTTP 404");
    assert_string_equal(s.delivery, "d-1");
    assert_int_equal(s.tier, 4);
}

/* A callback; workflow is what its status, its job and its run are. */
#define CALLBACK(workflow)                                                                         \
    "{\"event_type\":\"pull_request\",\"delivery_id\":\"d-1\",\"workflow\":{\"name\":\"CI\","      \
    "\"schema_version\":\"1\"," workflow "}}"

static void a_callback_shows_its_conclusion_once_it_is_completed(void **state)
{
    (void)state;
    struct summary s = summarise(
        TOPIC_CALLBACKS,
        CALLBACK("\"status\":\"in_progress\",\"conclusion\":null,\"run_id\":\"1\""), NULL);
    assert_string_equal(s.outcome, "in_progress");
    assert_string_equal(s.detail, "CI");
    s = summarise(TOPIC_CALLBACKS,
                  CALLBACK("\"status\":\"completed\",\"conclusion\":\"failure\","
                           "\"run_id\":\"1\",\"job_name\":\"linux\""),
                  NULL);
    assert_string_equal(s.outcome, "failure");
    assert_string_equal(s.detail, "CI / linux");
}

static void a_callback_says_which_job_it_is_of_and_how_far_it_is(void **state)
{
    (void)state;
    struct summary s =
        summarise(TOPIC_CALLBACKS,
                  CALLBACK("\"status\":\"in_progress\",\"job_name\":\"linux\",\"run_id\":17"),
                  "replay", "r-1", NULL);
    assert_int_equal(s.job_state, JOB_IN_PROGRESS);
    assert_string_equal(s.job, "CI / linux");
    assert_string_equal(s.detail, "CI / linux, replay r-1");
    assert_string_equal(s.run_id, "17");
    assert_string_equal(s.check_run_id, "17-1");
    assert_string_equal(s.run_attempt, "1");
    s = summarise(TOPIC_CALLBACKS, CALLBACK("\"status\":\"in_progress\",\"run_id\":17"),
                  "run_attempt", "3", NULL);
    assert_string_equal(s.check_run_id, "17-3");
    assert_string_equal(s.run_attempt, "3");
#define COMPLETED                                                                                  \
    CALLBACK("\"status\":\"completed\",\"conclusion\":\"timed_out\",\"run_id\":\"17\","            \
             "\"run_attempt\":\"2\",\"check_run_id\":\"7001\"")
    s = summarise(TOPIC_CALLBACKS, COMPLETED, NULL);
    assert_int_equal(s.job_state, JOB_COMPLETED);
    assert_string_equal(s.check_run_id, "7001");
    assert_string_equal(s.run_attempt, "2");
    assert_string_equal(s.detail, "CI, attempt 2");
    s = summarise(TOPIC_CALLBACKS, COMPLETED, "provenance", "sweeper", NULL);
    assert_int_equal(s.job_state, JOB_TIMED_OUT);
    assert_int_equal(summarise(TOPIC_CALLBACKS, "{", NULL).job_state, JOB_NONE);
    assert_int_equal(summarise(TOPIC_CALLBACKS, "{}", NULL).job_state, JOB_NONE);
}

static void a_result_shows_its_job_and_whose_it_is(void **state)
{
    (void)state;
    struct summary s =
        summarise(TOPIC_RESULTS,
                  "{\"dynamoKey\":\"k\",\"status\":\"completed\",\"conclusion\":\"failure\","
                  "\"downstream_repo\":\"o/r\",\"downstream_repo_level\":\"L3\",\"pr_number\":7,"
                  "\"delivery_id\":\"d-1\",\"workflow_name\":\"CI\",\"job_name\":\"linux\"}",
                  NULL);
    assert_string_equal(s.outcome, "failure");
    assert_string_equal(s.detail, "CI / linux");
    assert_string_equal(s.repos, "o/r");
    assert_string_equal(s.delivery, "d-1");
    assert_int_equal(s.tier, 3);
    assert_int_equal(s.pr, 7);
}

static void a_rerun_says_of_which_run_and_a_dispatch_stays_short(void **state)
{
    (void)state;
#define OUTCOME(kind, run_id)                                                                      \
    "{\"delivery_id\":\"d\",\"repo\":\"o/r\",\"tier\":\"L4\",\"kind\":\"" kind                     \
    "\",\"run_id\":" run_id ",\"outcome\":\"dispatched\",\"http_status\":201,"                     \
    "\"latency_ms\":5,\"at\":\"2023-11-14T22:13:20Z\"}"
    struct summary s =
        summarise(TOPIC_DISPATCH_L4, "", "kind", "rerun_failed", "run_id", "17", NULL);
    assert_string_equal(s.detail, "rerun_failed of run 17, 0 bytes");
    s = summarise(TOPIC_DISPATCH_L4, "", "kind", "expand", "run_id", "8", NULL);
    assert_string_equal(s.detail, "expand of check suite 8, 0 bytes");
    s = summarise(TOPIC_DISPATCHES, OUTCOME("rerun_all", "\"17\""), NULL);
    assert_string_equal(s.detail, "rerun_all of run 17, HTTP 201, 5 ms");
    s = summarise(TOPIC_DISPATCHES, OUTCOME("expand", "\"d:x:7\""), NULL);
    assert_string_equal(s.detail, "expand of the check d:x:7, HTTP 201, 5 ms");
    s = summarise(TOPIC_DISPATCHES, OUTCOME("dispatch", "null"), NULL);
    assert_string_equal(s.detail, "HTTP 201, 5 ms");
    assert_string_equal(s.kind, "dispatch");
}

static void a_task_says_its_attempt_and_that_it_was_trimmed(void **state)
{
    (void)state;
    struct summary s =
        summarise(TOPIC_DISPATCH_L2, "{}", "kind", "dispatch", "repos", "o/r", "attempt", "3",
                  "payload_trimmed", "[\"_links\"]", "again", "a-1", NULL);
    assert_string_equal(s.outcome, "routed");
    assert_non_null(strstr(s.detail, ", 2 bytes, attempt 3, trimmed to fit"));
    assert_non_null(strstr(s.detail, "again a-1"));
}

static void a_mark_to_reconcile_names_its_commit_and_downstream(void **state)
{
    (void)state;
    struct summary s = summarise(TOPIC_RECONCILE, "fold", "key",
                                 "6dcb09b5b57875f334f61aebed695e2e4193db5e/org/repo", NULL);
    assert_string_equal(s.outcome, "dirty");
    assert_string_equal(s.head_sha, "6dcb09b5b57875f334f61aebed695e2e4193db5e");
    assert_string_equal(s.repos, "org/repo");
    assert_string_equal(s.detail, "fold");
}

static void what_cannot_be_read_is_said_and_nothing_is_made_up(void **state)
{
    (void)state;
    assert_true(str_starts(str_of(summarise(TOPIC_CALLBACKS, "{", NULL).detail), "unreadable: "));
    assert_true(str_starts(str_of(summarise(TOPIC_RESULTS, "[]", NULL).detail), "unreadable: "));
    assert_string_equal(summarise(TOPIC_RESULTS, NULL, NULL).detail, "removed");
    assert_true(strncmp(summarise(TOPIC_DISPATCHES, "x", NULL).detail, "unreadable: ", 12) == 0);
}

static void overlong_text_is_cut_not_lost(void **state)
{
    static char error[1000];

    (void)state;
    memset(error, 'e', sizeof(error) - 1);
    struct summary s = summarise(TOPIC_DLQ, "", "error", error, "event", error, NULL);
    assert_int_equal(strlen(s.detail), sizeof(s.detail) - 1);
    assert_int_equal(strlen(s.event), sizeof(s.event) - 1);
}

static void filters_all_have_to_match_and_ignore_the_case_of_a_repository(void **state)
{
    struct summary s = summarise(TOPIC_DISPATCH_L2, "", "delivery", "d", "repos", "org/q,Org/R",
                                 "tier", "L2", "pr", "7", NULL);
    struct filter f = { .delivery = STR_LIT("d"), .repo = STR_LIT("org/r"), .pr = 7, .tier = 2 };

    (void)state;
    assert_true(filter_matches(&f, &s));
    f.repo = STR_LIT("ORG/Q");
    assert_true(filter_matches(&f, &s));
    f.repo = STR_LIT("org/q,org/r");
    assert_false(filter_matches(&f, &s));
    f.repo = STR_LIT("org");
    assert_false(filter_matches(&f, &s));
    f.repo = STR_NONE;
    f.tier = 3;
    assert_false(filter_matches(&f, &s));
    f = (struct filter){ .pr = 8 };
    assert_false(filter_matches(&f, &s));
    f = (struct filter){ .pr = 0 };
    assert_true(filter_matches(&f, &s));
}

static struct summary a_task_for(const char *header, const char *repos)
{
    return summarise(TOPIC_DISPATCH_L4, "{}", header, repos, "tier", "L4", "kind", "dispatch",
                     NULL);
}

static void a_line_names_every_downstream_of_its_record(void **state)
{
    struct summary s = a_task_for("repos", "org/a,org/b,org/c");
    struct buf text;

    (void)state;
    buf_init(&text, 4096);
    summary_line(&text, &s, 0);
    assert_non_null(strstr(text.ptr, " L4 org/a +2                 routed      dispatch, 2 bytes; "
                                     "for org/a, org/b, org/c  [3]@17"));
    buf_reset(&text);
    s = a_task_for("repos", "org/a");
    summary_line(&text, &s, 0);
    assert_non_null(strstr(text.ptr, " L4 org/a                    routed      dispatch, 2 bytes  "
                                     "[3]@17"));
    buf_clear(&text);
}

static void json_lists_the_downstreams_and_names_one_that_is_alone(void **state)
{
    static const struct {
        const char *header, *repos, *wanted;
    } table[] = {
        { "repos", "org/a,org/b", "\"repo\":null,\"repos\":[\"org/a\",\"org/b\"]," },
        { "repos", "org/a", "\"repo\":\"org/a\",\"repos\":[\"org/a\"]," },
        { "repo", "org/a", "\"repo\":\"org/a\",\"repos\":[\"org/a\"]," }, /* the old form */
        { "other", "", "\"repo\":null,\"repos\":[]," },
    };
    struct buf text;

    (void)state;
    buf_init(&text, 4096);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct summary s = a_task_for(table[i].header, table[i].repos);
        buf_reset(&text);
        summary_json(&text, &s);
        if (!strstr(text.ptr, table[i].wanted))
            fail_msg("%s: %s", table[i].repos, text.ptr);
    }
    buf_clear(&text);
}

static void a_task_of_the_old_form_reads_as_one_for_one_downstream(void **state)
{
    struct summary s = a_task_for("repo", "Org/A");
    struct filter f = { .repo = STR_LIT("org/a") };

    (void)state;
    assert_string_equal(s.repos, "Org/A");
    assert_true(filter_matches(&f, &s));
}

static void controls_never_reach_a_line_and_json_stays_json(void **state)
{
    struct summary s = summarise(TOPIC_DLQ, "", "error", "a\x1b[31m\nb\"", NULL);
    struct buf text;

    (void)state;
    buf_init(&text, 4096);
    summary_line(&text, &s, SUMMARY_DELIVERY);
    assert_null(memchr(text.ptr, '\x1b', text.len));
    assert_null(memchr(text.ptr, '\n', text.len));
    buf_reset(&text);
    summary_json(&text, &s);
    assert_non_null(strstr(text.ptr, "a\\u001b[31m\\nb\\\""));
    buf_clear(&text);
}

static void a_line_has_the_date_where_it_is_wanted(void **state)
{
    struct summary s = summarise(TOPIC_DLQ, "", "class", "refused", NULL);
    struct buf text;

    (void)state;
    buf_init(&text, 4096);
    summary_line(&text, &s, SUMMARY_DATE);
    assert_true(str_starts(buf_str(&text), "1970-01-01T00:00:01.000Z dlq         -   "));
    buf_reset(&text);
    summary_line(&text, &s, 0);
    assert_true(str_starts(buf_str(&text), "00:00:01.000Z dlq         -   "));
    buf_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parked_record_says_why_and_where_it_came_from),
        cmocka_unit_test(a_callback_shows_its_conclusion_once_it_is_completed),
        cmocka_unit_test(a_callback_says_which_job_it_is_of_and_how_far_it_is),
        cmocka_unit_test(a_result_shows_its_job_and_whose_it_is),
        cmocka_unit_test(a_rerun_says_of_which_run_and_a_dispatch_stays_short),
        cmocka_unit_test(a_task_says_its_attempt_and_that_it_was_trimmed),
        cmocka_unit_test(a_mark_to_reconcile_names_its_commit_and_downstream),
        cmocka_unit_test(what_cannot_be_read_is_said_and_nothing_is_made_up),
        cmocka_unit_test(overlong_text_is_cut_not_lost),
        cmocka_unit_test(filters_all_have_to_match_and_ignore_the_case_of_a_repository),
        cmocka_unit_test(a_line_names_every_downstream_of_its_record),
        cmocka_unit_test(json_lists_the_downstreams_and_names_one_that_is_alone),
        cmocka_unit_test(a_task_of_the_old_form_reads_as_one_for_one_downstream),
        cmocka_unit_test(controls_never_reach_a_line_and_json_stays_json),
        cmocka_unit_test(a_line_has_the_date_where_it_is_wanted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

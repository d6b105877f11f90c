#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/model/result_record.h"

static void fill(struct result_record *r)
{
    result_record_init(r);
    r->key = mem_dup("org%2Ffour/d-1/ci/build/77-1");
    r->state = JOB_COMPLETED;
    r->conclusion = mem_dup("failure");
    r->repo = mem_dup("org/four");
    r->level = 4;
    r->delivery_id = mem_dup("d-1");
    r->job_name = mem_dup("build \"x\"\n");
    r->run_id = mem_dup("77");
    r->run_attempt = mem_dup("1");
    r->pr_number = 42;
    r->total = 3;
    r->failed = 0;
    r->dispatched_ms = 1000;
    r->in_progress_ms = 2500;
    r->completed_ms = 12750;
}

static char *json_of(const struct result_record *r)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    result_record_to_json(r, &text);
    return buf_take(&text, NULL);
}

static void columns_are_those_of_the_hud_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {
        "dynamoKey",
        "status",
        "conclusion",
        "downstream_repo",
        "downstream_repo_level",
        "upstream_repo",
        "event_type",
        "pr_number",
        "pytorch_head_sha",
        "delivery_id",
        "workflow_name",
        "job_name",
        "check_run_id",
        "run_id",
        "run_attempt",
        "workflow_run_url",
        "artifact_url",
        "queue_time",
        "execution_time",
        "started_at",
        "completed_at",
        "total_tests",
        "passed_tests",
        "failed_tests",
        "skipped_tests",
        "failed_tests_json",
        "triage_verdict_json",
        "environment",
    };
    struct result_record r;
    fill(&r);
    char *text = json_of(&r);
    json_t *root = json_loads(text, 0, NULL);
    assert_int_equal(json_object_size(root), sizeof(names) / sizeof(names[0]));
    const char *at = text;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char quoted[64];
        snprintf(quoted, sizeof(quoted), "\"%s\":", names[i]);
        at = strstr(at, quoted);
        assert_non_null(at);
    }
    json_decref(root);
    free(text);
    result_record_clear(&r);
}

static void unknown_is_null_and_zero_is_zero(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    char *text = json_of(&r);
    assert_non_null(strstr(text, "\"failed_tests\":0,"));
    assert_non_null(strstr(text, "\"passed_tests\":null"));
    assert_non_null(strstr(text, "\"environment\":null"));
    assert_non_null(strstr(text, "\"queue_time\":null"));
    assert_null(strstr(text, "dispatched_ms"));
    free(text);
    result_record_clear(&r);
}

static void times_have_three_decimals(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    result_record_times(&r);
    char *text = json_of(&r);
    assert_non_null(strstr(text, "\"queue_time\":1.500,"));
    assert_non_null(strstr(text, "\"execution_time\":10.250,"));
    free(text);
    result_record_clear(&r);
}

static void times_are_never_negative(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.dispatched_ms = 9000;
    r.completed_ms = 2000;
    result_record_times(&r);
    assert_int_equal(r.queue_ms, 0);
    assert_int_equal(r.execution_ms, 0);
    result_record_clear(&r);
}

static void queue_time_is_that_of_the_run(void **state)
{
    (void)state;
    struct result_record r;
    result_record_init(&r);
    r.run_attempt = mem_dup("1");
    r.dispatched_ms = 1000;
    r.run_started_ms = 3000;
    result_record_times(&r); /* also of a job that reported only its end */
    assert_int_equal(r.queue_ms, 2000);
    r.in_progress_ms = 9000;
    result_record_times(&r);
    assert_int_equal(r.queue_ms, 2000);
    result_record_clear(&r);
}

static void queue_time_belongs_to_the_first_attempt_only(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    free(r.run_attempt);
    r.run_attempt = mem_dup("2");
    result_record_times(&r);
    assert_int_equal(r.queue_ms, -1);
    assert_int_equal(r.execution_ms, 10250);
    result_record_clear(&r);
}

static void times_are_unknown_without_both_clocks(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.in_progress_ms = -1;
    result_record_times(&r);
    assert_int_equal(r.queue_ms, -1);
    assert_int_equal(r.execution_ms, -1);
    result_record_clear(&r);
}

static void the_relays_clock_stands_in_for_times_that_nobody_reported(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.completed_at = mem_dup("2026-01-01T00:00:00Z");
    result_record_times(&r);
    assert_string_equal(r.started_at, "1970-01-01T00:00:02.500Z");
    assert_string_equal(r.completed_at, "2026-01-01T00:00:00Z");
    result_record_clear(&r);
}

static void json_and_back_is_the_same(void **state)
{
    (void)state;
    struct result_record r, again;
    struct why why;
    fill(&r);
    result_record_times(&r);
    char *text = json_of(&r);
    assert_int_equal(result_record_from_json(str_of(text), &again, &why), OK);
    char *text_again = json_of(&again);
    assert_string_equal(text, text_again);
    free(text);
    free(text_again);
    result_record_clear(&r);
    result_record_clear(&again);
}

static void a_hash_and_back_is_the_same(void **state)
{
    (void)state;
    struct result_record r, again;
    struct result_field fields[RESULT_FIELDS_MAX];
    fill(&r);
    result_record_init(&again);
    size_t n = result_record_fields(&r, fields);
    for (size_t i = 0; i < n; i++)
        result_record_set(&again, fields[i].name, fields[i].value);
    char *text = json_of(&r), *text_again = json_of(&again);
    assert_string_equal(text, text_again);
    assert_int_equal(again.dispatched_ms, 1000);
    assert_int_equal(again.completed_ms, 12750);
    free(text);
    free(text_again);
    result_record_clear(&r);
    result_record_clear(&again);
}

static void fields_that_are_not_ours_or_do_not_fit_are_passed_over(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    result_record_set(&r, STR_LIT("of_a_newer_version"), STR_LIT("x"));
    result_record_set(&r, STR_LIT("pr_number"), STR_LIT("many"));
    result_record_set(&r, STR_LIT("queue_time"), STR_LIT("1.x"));
    assert_int_equal(r.pr_number, 42);
    assert_int_equal(r.queue_ms, -1);
    result_record_clear(&r);
}

static void what_the_row_does_not_tell_comes_back_from_headers(void **state)
{
    struct result_record r, back;
    struct headers headers;
    (void)state;
    fill(&r);
    r.top_level = 4;
    r.run_complete = 1;
    r.ranks = mem_dup("40001=cl;20002=w");
    r.first_ms = 2500;
    r.last_ms = 12750;
    headers_init(&headers);
    result_record_to_headers(&r, &headers);
    assert_true(headers_get(&headers, "status").ptr == NULL); /* the row tells it */
    assert_true(headers_get(&headers, "timed_out_ms").ptr == NULL);
    char *json = json_of(&r);
    assert_int_equal(result_record_from_json(str_of(json), &back, NULL), OK);
    assert_int_equal(back.in_progress_ms, -1);
    result_record_from_headers(&back, &headers);
    assert_string_equal(back.ranks, r.ranks);
    assert_int_equal(back.dispatched_ms, 1000);
    assert_int_equal(back.in_progress_ms, 2500);
    assert_int_equal(back.timed_out_ms, -1);
    assert_int_equal(back.completed_ms, 12750);
    assert_int_equal(back.top_level, 4);
    assert_int_equal(back.run_complete, 1);
    assert_int_equal(back.first_ms, 2500);
    assert_int_equal(back.last_ms, 12750);
    assert_int_equal(back.state, JOB_COMPLETED);
    free(json);
    result_record_clear(&r);
    result_record_clear(&back);
}

/* Its work in Redis grows with each text. */
static void a_text_that_is_longer_than_ours_is_not_known(void **state)
{
    static char ranks[RESULT_RANKS_MAX + 2], name[RESULT_TEXT_MAX + 2];
    struct result_record r, back;
    struct headers headers;
    (void)state;
    memset(ranks, 'a', RESULT_RANKS_MAX + 1);
    memset(name, 'a', RESULT_TEXT_MAX + 1);
    for (int i = 0; i < 2; i++) {
        fill(&r);
        headers_init(&headers);
        headers_put(&headers, "ranks", str_of(ranks + i));
        free(r.artifact_url);
        r.artifact_url = mem_dup(name + i);
        free(r.failed_tests);
        r.failed_tests = mem_dup(name);
        char *json = json_of(&r);
        assert_int_equal(result_record_from_json(str_of(json), &back, NULL), OK);
        result_record_from_headers(&back, &headers);
        assert_int_equal(!!back.ranks, i);
        assert_int_equal(!!back.artifact_url, i);
        assert_string_equal(back.failed_tests, name);
        free(json);
        result_record_clear(&back);
        free(r.repo); /* one that it cannot be without */
        r.repo = mem_dup(name);
        json = json_of(&r);
        assert_int_equal(result_record_from_json(str_of(json), &back, NULL), ERR_REFUSE);
        free(json);
        result_record_clear(&r);
    }
}

static void what_is_no_result_is_refused(void **state)
{
    (void)state;
    static const char odd_status[] = "{\"dynamoKey\":\"k\",\"status\":\"odd\","
                                     "\"downstream_repo\":\"o/r\"}";
    static const char *const texts[] = { "", "[]", "{}", "{\"dynamoKey\":\"k\"}", odd_status };
    struct result_record r;
    struct why why;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(result_record_from_json(str_of(texts[i]), &r, &why), ERR_REFUSE);
}

static void the_hud_gets_raw_parts_and_an_attempt_that_is_a_number(void **state)
{
    (void)state;
    struct result_record r, back;
    struct why why;
    fill(&r);
    free(r.key);
    free(r.job_name);
    r.key = mem_dup("org%2Ffour/d-1/CI/a%2Fb/77-1");
    r.workflow_name = mem_dup("CI");
    r.job_name = mem_dup("a/b");
    r.check_run_id = mem_dup("77-1");
    char *text = json_of(&r);
    assert_non_null(strstr(text, "{\"dynamoKey\":\"org/four/d-1/CI/a/b/77-1\","));
    assert_non_null(strstr(text, "\"run_attempt\":1,"));
    assert_int_equal(result_record_from_json(str_of(text), &back, &why), OK);
    assert_string_equal(back.key, r.key);
    assert_string_equal(back.run_attempt, "1");
    free(text);
    result_record_clear(&back);
    free(r.run_attempt);
    r.run_attempt = mem_dup("007");
    text = json_of(&r);
    assert_non_null(strstr(text, "\"run_attempt\":\"007\","));
    free(text);
    result_record_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_of_the_hud_in_order),
        cmocka_unit_test(unknown_is_null_and_zero_is_zero),
        cmocka_unit_test(times_have_three_decimals),
        cmocka_unit_test(times_are_never_negative),
        cmocka_unit_test(queue_time_is_that_of_the_run),
        cmocka_unit_test(queue_time_belongs_to_the_first_attempt_only),
        cmocka_unit_test(times_are_unknown_without_both_clocks),
        cmocka_unit_test(the_relays_clock_stands_in_for_times_that_nobody_reported),
        cmocka_unit_test(json_and_back_is_the_same),
        cmocka_unit_test(a_hash_and_back_is_the_same),
        cmocka_unit_test(fields_that_are_not_ours_or_do_not_fit_are_passed_over),
        cmocka_unit_test(what_the_row_does_not_tell_comes_back_from_headers),
        cmocka_unit_test(a_text_that_is_longer_than_ours_is_not_known),
        cmocka_unit_test(what_is_no_result_is_refused),
        cmocka_unit_test(the_hud_gets_raw_parts_and_an_attempt_that_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

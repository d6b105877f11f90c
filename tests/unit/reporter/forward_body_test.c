#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "reporter/forward_body.h"

static json_t *body_of(const struct result_record *r)
{
    struct buf text;
    buf_init(&text, 2u << 20);
    forward_body(r, &text);
    json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    buf_clear(&text);
    return root;
}

static void fill(struct result_record *r)
{
    result_record_init(r);
    r->key = mem_dup("k");
    r->state = JOB_COMPLETED;
    r->conclusion = mem_dup("success");
    r->repo = mem_dup("org/four");
    r->level = 4;
    r->upstream_repo = mem_dup("pytorch/pytorch");
    r->event_type = mem_dup("pull_request");
    r->delivery_id = mem_dup("d-1");
    r->head_sha = mem_dup("abc1234");
    r->pr_number = 42;
    r->queue_ms = 1500;
}

static const char *text_at(json_t *root, const char *a, const char *b, const char *c)
{
    json_t *at = json_object_get(json_object_get(root, a), b);
    return json_string_value(c ? json_object_get(at, c) : at);
}

static void trusted_is_what_the_relay_measured_and_proved(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    json_t *root = body_of(&r);
    json_t *metrics = json_object_get(json_object_get(root, "trusted"), "ci_metrics");
    assert_true(json_real_value(json_object_get(metrics, "queue_time")) == 1.5);
    assert_true(json_is_null(json_object_get(metrics, "execution_time")));
    assert_string_equal(text_at(root, "trusted", "verified_repo", NULL), "org/four");
    assert_string_equal(text_at(root, "trusted", "downstream_repo_level", NULL), "L4");
    json_decref(root);
    result_record_clear(&r);
}

static void the_payload_is_cut_to_what_the_hud_reads_and_holds_no_token(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    json_t *root = body_of(&r);
    json_t *callback = json_object_get(json_object_get(root, "untrusted"), "callback_payload");
    assert_null(json_object_get(callback, "callback_token"));
    json_t *pr = json_object_get(json_object_get(callback, "payload"), "pull_request");
    assert_int_equal(json_integer_value(json_object_get(pr, "number")), 42);
    assert_string_equal(text_at(pr, "head", "sha", NULL), "abc1234");
    assert_string_equal(text_at(root, "untrusted", "callback_payload", "delivery_id"), "d-1");
    json_decref(root);
    result_record_clear(&r);
}

static void a_push_names_its_commit(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.pr_number = 0;
    json_t *root = body_of(&r);
    json_t *callback = json_object_get(json_object_get(root, "untrusted"), "callback_payload");
    assert_string_equal(text_at(callback, "payload", "after", NULL), "abc1234");
    json_decref(root);
    result_record_clear(&r);
}

static void a_self_report_names_its_commit_as_it_came(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.pr_number = 0;
    free(r.event_type);
    r.event_type = mem_dup("nightly");
    json_t *root = body_of(&r);
    json_t *callback = json_object_get(json_object_get(root, "untrusted"), "callback_payload");
    assert_string_equal(text_at(callback, "payload", "head_sha", NULL), "abc1234");
    assert_string_equal(text_at(callback, "payload", "after", NULL), "abc1234");
    json_decref(root);
    result_record_clear(&r);
}

static void a_time_out_is_completed_for_the_hud(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.state = JOB_TIMED_OUT;
    json_t *root = body_of(&r);
    json_t *callback = json_object_get(json_object_get(root, "untrusted"), "callback_payload");
    assert_string_equal(text_at(callback, "workflow", "status", NULL), "completed");
    json_decref(root);
    result_record_clear(&r);
}

static void failed_tests_and_verdict_are_documents_again(void **state)
{
    (void)state;
    struct result_record r;
    fill(&r);
    r.failed_tests = mem_dup("[{\"name\":\"t\"}]");
    r.triage_verdict = mem_dup("{\"category\":\"infra\"}");
    r.failed = 1;
    json_t *root = body_of(&r);
    json_t *workflow = json_object_get(
        json_object_get(json_object_get(root, "untrusted"), "callback_payload"), "workflow");
    assert_int_equal(json_array_size(json_object_get(workflow, "failed_tests_detail")), 1);
    assert_string_equal(text_at(workflow, "triage_verdict", "category", NULL), "infra");
    json_t *tests = json_object_get(workflow, "test_results");
    assert_int_equal(json_integer_value(json_object_get(tests, "failed")), 1);
    assert_true(json_is_null(json_object_get(tests, "passed")));
    json_decref(root);
    result_record_clear(&r);
}

/* The longest that the fold can put together: names and URLs at their limits, twenty failed tests
 * and a verdict at theirs, every byte of them escaped. */
static void the_largest_row_has_less_than_2_mb(void **state)
{
    (void)state;
    struct result_record r;
    static char name[513], url[2049], tests[20 * 8 * 1024 + 1], verdict[16 * 1024 + 1];
    memset(name, 1, sizeof(name) - 1);
    memset(url, '"', sizeof(url) - 1);
    memset(tests, ' ', sizeof(tests) - 1);
    memset(verdict, ' ', sizeof(verdict) - 1);
    tests[0] = '[', tests[1] = ']';
    verdict[0] = '{', verdict[1] = '}';
    fill(&r);
    r.workflow_name = mem_dup(name);
    r.job_name = mem_dup(name);
    r.environment = mem_dup(name);
    r.run_url = mem_dup(url);
    r.artifact_url = mem_dup(url);
    r.failed_tests = mem_dup(tests);
    r.triage_verdict = mem_dup(verdict);
    struct buf text;
    buf_init(&text, 2u * 1000 * 1000);
    forward_body(&r, &text);
    assert_false(buf_full(&text));
    json_t *root = json_loadb(text.ptr, text.len, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    buf_clear(&text);
    result_record_clear(&r);
}

static void answers_say_what_follows(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum forward_verdict verdict;
    } rows[] = { { 200, FORWARD_SENT },   { 204, FORWARD_SENT },    { 0, FORWARD_WAIT },
                 { 408, FORWARD_WAIT },   { 429, FORWARD_WAIT },    { 500, FORWARD_WAIT },
                 { 503, FORWARD_WAIT },   { 301, FORWARD_REFUSED }, { 400, FORWARD_REFUSED },
                 { 401, FORWARD_REFUSED } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(forward_classify(rows[i].status), rows[i].verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trusted_is_what_the_relay_measured_and_proved),
        cmocka_unit_test(the_payload_is_cut_to_what_the_hud_reads_and_holds_no_token),
        cmocka_unit_test(a_push_names_its_commit),
        cmocka_unit_test(a_self_report_names_its_commit_as_it_came),
        cmocka_unit_test(a_time_out_is_completed_for_the_hud),
        cmocka_unit_test(failed_tests_and_verdict_are_documents_again),
        cmocka_unit_test(the_largest_row_has_less_than_2_mb),
        cmocka_unit_test(answers_say_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the sweep publishes is read back the way the fold reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/mem.h"
#include "common/model/ids.h"
#include "reporter/callback_fact.h"
#include "reporter/sweep_callback.h"

#define DEADLINE_MS 1795231200123LL

static void job_init(struct result_record *job, const char *workflow, const char *name,
                     const char *check_run_id)
{
    struct buf key;
    buf_init(&key, 8192);
    job_key(&key, STR_LIT("org/four"), STR_LIT("d-1"), str_of(workflow), str_of(name),
            str_of(check_run_id));
    result_record_init(job);
    job->key = buf_take(&key, NULL);
    job->repo = mem_dup("org/four");
    job->level = 4;
    job->delivery_id = mem_dup("d-1");
    job->event_type = mem_dup("pull_request");
    job->pr_number = 42;
    job->head_sha = mem_dup("abcdef1234");
    job->dispatched_ms = 1000;
    job->workflow_name = mem_dup(workflow);
    job->job_name = mem_dup(name);
    job->check_run_id = mem_dup(check_run_id);
    job->run_id = mem_dup("77");
    job->run_attempt = mem_dup("3");
    job->run_url = mem_dup("https://ci.example/77");
}

static void publish(const struct result_record *job, struct headers *headers, struct buf *body)
{
    sweep_callback_headers(job, DEADLINE_MS, headers);
    buf_init(body, SWEEP_BODY_MAX);
    sweep_callback_body(job, "timed_out", body);
    assert_false(buf_full(body));
}

static void read_back(const struct result_record *job, struct callback_fact *fact)
{
    struct headers headers;
    struct buf body;
    struct why why;
    publish(job, &headers, &body);
    if (callback_fact_read(&headers, buf_str(&body), "pytorch/pytorch", fact, &why))
        fail_msg("%s: %s", why.text, body.ptr);
    buf_clear(&body);
}

static void it_times_the_attempt_out_at_its_deadline(void **state)
{
    (void)state;
    struct result_record job;
    struct callback_fact fact;
    job_init(&job, "ci", "build", "77-3");
    read_back(&job, &fact);
    assert_int_equal(fact.job.state, JOB_TIMED_OUT);
    assert_string_equal(fact.job.conclusion, "timed_out");
    assert_int_equal(fact.received_ms, DEADLINE_MS);
    assert_false(fact.pending);
    assert_string_equal(fact.job.run_id, "77");
    assert_string_equal(fact.job.run_attempt, "3");
    assert_string_equal(fact.job.run_url, "https://ci.example/77");
    assert_string_equal(fact.job.event_type, "pull_request");
    result_record_clear(&fact.job);
    result_record_clear(&job);
}

static void it_ends_the_job_with_the_conclusion_of_its_run(void **state)
{
    (void)state;
    struct result_record job;
    struct callback_fact fact;
    struct headers headers;
    struct buf body;
    struct why why;
    job_init(&job, "ci", "build", "77-3");
    sweep_callback_headers(&job, DEADLINE_MS, &headers);
    buf_init(&body, SWEEP_BODY_MAX);
    sweep_callback_body(&job, "cancelled", &body);
    assert_int_equal(callback_fact_read(&headers, buf_str(&body), "pytorch/pytorch", &fact, &why),
                     OK);
    assert_int_equal(fact.job.state, JOB_TIMED_OUT); /* so that a completed still wins */
    assert_string_equal(fact.job.conclusion, "cancelled");
    buf_clear(&body);
    result_record_clear(&fact.job);
    result_record_clear(&job);
}

static void it_has_the_target_of_the_job(void **state)
{
    (void)state;
    struct result_record job;
    struct callback_fact fact;
    job_init(&job, "ci", "build", "77-3");
    read_back(&job, &fact);
    assert_string_equal(fact.job.repo, "org/four");
    assert_int_equal(fact.job.level, 4);
    assert_int_equal(fact.job.pr_number, 42);
    assert_string_equal(fact.job.head_sha, "abcdef1234");
    assert_int_equal(fact.job.dispatched_ms, 1000);
    result_record_clear(&fact.job);
    result_record_clear(&job);
}

static void every_name_comes_back_under_its_own_key(void **state)
{
    (void)state;
    static const char *const names[] = {
        "linux / build: py3.12",    "42",   "0",         "a/b/c", "://", "say \"hi\"\\n", "%2F",
        "\xe6\x9e\x84\xe5\xbb\xba", "null", "{\"a\":1}",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct result_record job;
        struct callback_fact fact;
        job_init(&job, names[i], names[i], "1:2/3");
        read_back(&job, &fact);
        assert_string_equal(fact.job.key, job.key);
        assert_string_equal(fact.job.workflow_name, names[i]);
        assert_string_equal(fact.job.job_name, names[i]);
        result_record_clear(&fact.job);
        result_record_clear(&job);
    }
}

static void the_longest_names_fit(void **state)
{
    (void)state;
    struct result_record job;
    struct callback_fact fact;
    char name[NAME_MAX_BYTES + 1];
    memset(name, '"', sizeof(name) - 1); /* written as \", two bytes each */
    name[sizeof(name) - 1] = '\0';
    job_init(&job, name, name, "1");
    read_back(&job, &fact);
    assert_string_equal(fact.job.key, job.key);
    result_record_clear(&fact.job);
    result_record_clear(&job);
}

static void what_the_job_does_not_know_is_not_reported(void **state)
{
    (void)state;
    struct result_record job;
    struct callback_fact fact;
    job_init(&job, "ci", "build", "77-3");
    job.pr_number = 0;
    job.dispatched_ms = -1;
    char **const unknown[] = { &job.head_sha, &job.event_type, &job.run_url };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        mem_free_char(unknown[i]);
        *unknown[i] = NULL;
    }
    read_back(&job, &fact);
    assert_int_equal(fact.job.pr_number, 0);
    assert_int_equal(fact.job.dispatched_ms, -1);
    assert_null(fact.job.head_sha);
    assert_null(fact.job.event_type);
    assert_null(fact.job.run_url);
    result_record_clear(&fact.job);
    result_record_clear(&job);
}

static void the_same_job_and_deadline_give_the_same_bytes(void **state)
{
    (void)state;
    struct result_record job;
    struct headers headers[2];
    struct buf body[2];
    job_init(&job, "ci", "build", "77-3");
    for (int i = 0; i < 2; i++)
        publish(&job, &headers[i], &body[i]);
    assert_true(str_eq(buf_str(&body[0]), buf_str(&body[1])));
    assert_int_equal(headers[0].n, headers[1].n);
    for (size_t i = 0; i < headers[0].n; i++)
        assert_true(str_eq(headers[0].at[i].value, headers[1].at[i].value));
    for (int i = 0; i < 2; i++)
        buf_clear(&body[i]);
    result_record_clear(&job);
}

static void it_goes_where_the_jobs_own_callbacks_go(void **state)
{
    (void)state;
    struct result_record job;
    struct buf key;
    job_init(&job, "ci", "build", "77-3");
    buf_init(&key, 256);
    sweep_callback_key(&job, &key);
    assert_string_equal(key.ptr, "d-1/org/four");
    buf_clear(&key);
    result_record_clear(&job);
}

static void a_job_without_its_names_is_not_reported(void **state)
{
    (void)state;
    struct result_record job;
    job_init(&job, "ci", "build", "77-3");
    assert_true(sweep_callback_possible(&job));
    job.level = -1;
    assert_false(sweep_callback_possible(&job));
    job.level = 2;
    mem_free_char(&job.run_id);
    job.run_id = NULL;
    assert_false(sweep_callback_possible(&job));
    result_record_clear(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_times_the_attempt_out_at_its_deadline),
        cmocka_unit_test(it_ends_the_job_with_the_conclusion_of_its_run),
        cmocka_unit_test(it_has_the_target_of_the_job),
        cmocka_unit_test(every_name_comes_back_under_its_own_key),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(what_the_job_does_not_know_is_not_reported),
        cmocka_unit_test(the_same_job_and_deadline_give_the_same_bytes),
        cmocka_unit_test(it_goes_where_the_jobs_own_callbacks_go),
        cmocka_unit_test(a_job_without_its_names_is_not_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

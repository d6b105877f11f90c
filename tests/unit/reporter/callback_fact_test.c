#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "reporter/callback_fact.h"

#define BODY(more)                                                                                 \
    "{\"event_type\":\"pull_request\",\"delivery_id\":\"of-the-body\",\"payload\":{},"             \
    "\"workflow\":{\"status\":\"completed\",\"conclusion\":\"success\",\"name\":\"ci\","           \
    "\"run_id\":77" more "}}"

static void headers_fill(struct headers *h, const char *provenance)
{
    headers_init(h);
    headers_put(h, "repo", STR_LIT("org/four"));
    headers_put(h, "level", STR_LIT("L4"));
    headers_put(h, "delivery", STR_LIT("d-1"));
    headers_put(h, "pr", STR_LIT("42"));
    headers_put(h, "head_sha", STR_LIT("abcdef1234"));
    headers_put(h, "dispatched_ms", STR_LIT("1000"));
    headers_put(h, "received_ms", STR_LIT("2000"));
    headers_put(h, "provenance", str_of(provenance));
}

static enum err read_fact(const struct headers *h, const char *body, struct callback_fact *fact)
{
    struct why why;
    return callback_fact_read(h, str_of(body), "pytorch/pytorch", fact, &why);
}

static void identity_comes_from_the_headers_only(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "token");
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_string_equal(fact.job.delivery_id, "d-1");
    assert_string_equal(fact.job.repo, "org/four");
    assert_string_equal(fact.job.head_sha, "abcdef1234");
    assert_int_equal(fact.job.pr_number, 42);
    assert_int_equal(fact.job.level, 4);
    assert_int_equal(fact.job.dispatched_ms, 1000);
    assert_int_equal(fact.received_ms, 2000);
    assert_false(fact.pending);
    assert_string_equal(fact.job.key, "org%2Ffour/d-1/ci/ci/77-1");
    result_record_clear(&fact.job);
}

static void the_issuer_is_kept_but_not_the_sweeps(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "token");
    headers_put(&h, "issuer", STR_LIT("https://agent.buildkite.com"));
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_string_equal(fact.job.issuer, "https://agent.buildkite.com");
    result_record_clear(&fact.job);
    headers_fill(&h, "sweeper");
    headers_put(&h, "issuer", STR_LIT("crcr-reporter"));
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_null(fact.job.issuer);
    result_record_clear(&fact.job);
}

static void the_page_of_a_run_is_on_the_host_of_its_ci(void **state)
{
    (void)state;
    static const struct {
        const char *issuer, *url;
        bool kept;
    } cases[] = {
        { "https://token.actions.githubusercontent.com", "https://github.com/o/r/actions/runs/77",
          true },
        { "https://token.actions.githubusercontent.com", "https://github.com.evil.example/o/r",
          false },
        { "https://agent.buildkite.com", "https://buildkite.com/o/p/builds/7", true },
        { "https://agent.buildkite.com", "https://github.com/o/r/actions/runs/77", false },
        { "https://gitlab.example", "https://gitlab.example/-/jobs/1", true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct headers h;
        struct callback_fact fact;
        char body[512];
        headers_fill(&h, "token");
        headers_put(&h, "issuer", str_of(cases[i].issuer));
        snprintf(body, sizeof(body), BODY(",\"url\":\"%s\""), cases[i].url);
        assert_int_equal(read_fact(&h, body, &fact), OK);
        if (cases[i].kept)
            assert_string_equal(fact.job.run_url, cases[i].url);
        else
            assert_null(fact.job.run_url);
        result_record_clear(&fact.job);
    }
}

static void an_attempt_that_the_body_lacks_is_the_headers(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "token");
    headers_put(&h, "run_attempt", STR_LIT("3"));
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_string_equal(fact.job.run_attempt, "3");
    assert_string_equal(fact.job.key, "org%2Ffour/d-1/ci/ci/77-3");
    result_record_clear(&fact.job);
}

static void none_is_failure_and_says_so(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "token");
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_int_equal(fact.job.no_conclusion, -1);
    result_record_clear(&fact.job);
    assert_int_equal(read_fact(&h,
                               "{\"delivery_id\":\"d-1\",\"workflow\":{\"status\":\"completed\","
                               "\"conclusion\":null,\"name\":\"ci\",\"run_id\":77}}",
                               &fact),
                     OK);
    assert_string_equal(fact.job.conclusion, "failure");
    assert_int_equal(fact.job.no_conclusion, 1);
    assert_false(result_record_is_successful(&fact.job));
    result_record_clear(&fact.job);
    assert_int_equal(read_fact(&h,
                               "{\"delivery_id\":\"d-1\",\"workflow\":{\"status\":\"in_progress\","
                               "\"name\":\"ci\",\"run_id\":77}}",
                               &fact),
                     OK);
    assert_null(fact.job.conclusion);
    assert_int_equal(fact.job.no_conclusion, -1);
    result_record_clear(&fact.job);
}

static void what_was_not_reported_stays_unknown(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "pending");
    headers_remove(&h, "pr");
    headers_remove(&h, "head_sha");
    headers_remove(&h, "dispatched_ms");
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_true(fact.pending);
    assert_null(fact.job.head_sha);
    assert_int_equal(fact.job.pr_number, 0);
    assert_int_equal(fact.job.dispatched_ms, -1);
    assert_int_equal(fact.job.total, -1);
    assert_int_equal(fact.job.run_complete, -1);
    result_record_clear(&fact.job);
}

static void the_sweeper_times_out_and_never_completes(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    headers_fill(&h, "sweeper");
    assert_int_equal(read_fact(&h, BODY(""), &fact), OK);
    assert_int_equal(fact.job.state, JOB_TIMED_OUT);
    assert_string_equal(fact.job.conclusion, "success"); /* of the run that has ended */
    result_record_clear(&fact.job);
}

static void the_view_keeps_twenty_failed_tests_and_counts_the_rest(void **state)
{
    (void)state;
    struct headers h;
    struct callback_fact fact;
    struct buf body;
    headers_fill(&h, "token");
    buf_init(&body, 1 << 20);
    buf_puts(&body, "{\"delivery_id\":\"d\",\"workflow\":{\"status\":\"completed\","
                    "\"conclusion\":\"failure\",\"name\":\"ci\",\"run_id\":77,"
                    "\"failed_tests_detail\":[");
    for (int i = 0; i < 25; i++)
        buf_printf(&body, "%s{\"name\":\"t%d\"}", i ? "," : "", i);
    buf_puts(&body, "]}}");
    assert_int_equal(read_fact(&h, body.ptr, &fact), OK);
    json_t *rows = json_loads(fact.job.failed_tests, 0, NULL);
    assert_int_equal(json_array_size(rows), FAILED_TESTS_KEPT);
    assert_int_equal(fact.job.failed_tests_cut, 5);
    json_decref(rows);
    buf_clear(&body);
    result_record_clear(&fact.job);
}

static void a_record_without_its_identity_is_poison(void **state)
{
    (void)state;
    static const char *const needed[] = { "repo", "level", "delivery", "received_ms" };
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        struct headers h;
        struct callback_fact fact;
        headers_fill(&h, "token");
        headers_remove(&h, needed[i]);
        assert_int_equal(read_fact(&h, BODY(""), &fact), ERR_REFUSE);
    }
}

static void a_body_that_is_no_callback_is_poison(void **state)
{
    (void)state;
    static const char *const bodies[] = { "", "[]", "{}", BODY(",\"status\":\"completed\"") };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct headers h;
        struct callback_fact fact;
        headers_fill(&h, "token");
        assert_int_equal(read_fact(&h, bodies[i], &fact), ERR_REFUSE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_comes_from_the_headers_only),
        cmocka_unit_test(the_issuer_is_kept_but_not_the_sweeps),
        cmocka_unit_test(the_page_of_a_run_is_on_the_host_of_its_ci),
        cmocka_unit_test(an_attempt_that_the_body_lacks_is_the_headers),
        cmocka_unit_test(none_is_failure_and_says_so),
        cmocka_unit_test(what_was_not_reported_stays_unknown),
        cmocka_unit_test(the_sweeper_times_out_and_never_completes),
        cmocka_unit_test(the_view_keeps_twenty_failed_tests_and_counts_the_rest),
        cmocka_unit_test(a_record_without_its_identity_is_poison),
        cmocka_unit_test(a_body_that_is_no_callback_is_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Against a real redis-server of its own: the rules live in Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/mem.h"
#include "common/io/redis.h"
#include "common/view/jobs.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW 1795231200000LL
#define KEY "org%2Ffour/d-1/ci/build/own-id"

static const struct view_times times = { .ttl_s = 3000, .overdue_ms = 21600000, .quota = 1 << 30 };

static void command(struct redis_fixture *f, const char *name, const char *key, const char *value)
{
    const struct redis_value *v;
    assert_int_equal(
        redis_call(f->redis, &v, REDIS_ARGS(str_of(name), str_of(key), str_of(value)), NULL), OK);
}

static void fold(struct redis_fixture *f, enum job_state reported, const char *conclusion,
                 const char *attempt)
{
    struct result_record fact, merged;
    enum fold_verdict verdict;
    result_record_init(&fact);
    fact.key = mem_dup(KEY);
    fact.state = reported;
    fact.conclusion = mem_dup(conclusion);
    fact.repo = mem_dup("org/four");
    fact.level = 4;
    fact.head_sha = mem_dup("0123456789abcdef");
    fact.delivery_id = mem_dup("d-1");
    fact.workflow_name = mem_dup("ci");
    fact.job_name = mem_dup("build");
    fact.check_run_id = mem_dup("own-id");
    fact.run_id = mem_dup("77");
    fact.run_attempt = mem_dup(attempt);
    fact.failed_tests = mem_dup("[{}]");
    assert_int_equal(job_fold_queue(f->redis, &fact, NOW, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &fact, NOW, &verdict, &merged, NULL), OK);
    result_record_clear(&merged);
    result_record_clear(&fact);
}

static bool state_of(struct redis_fixture *f, const char *attempt, enum job_state *ret,
                     char conclusion[32])
{
    bool found = false;
    assert_int_equal(
        job_state_get(f->redis, STR_LIT(KEY), str_of(attempt), &found, ret, conclusion, NULL), OK);
    return found;
}

static void the_state_of_an_attempt_is_told(void **state)
{
    struct redis_fixture *f = *state;
    enum job_state seen = JOB_NONE;
    char conclusion[32] = "";
    assert_false(state_of(f, "1", &seen, conclusion));
    fold(f, JOB_COMPLETED, "failure", "1");
    assert_true(state_of(f, "1", &seen, conclusion));
    assert_int_equal(seen, JOB_COMPLETED);
    assert_string_equal(conclusion, "failure");
}

static void another_attempt_under_the_same_key_says_nothing(void **state)
{
    struct redis_fixture *f = *state;
    enum job_state seen = JOB_NONE;
    char conclusion[32] = "";
    fold(f, JOB_COMPLETED, "failure", "1");
    assert_false(state_of(f, "2", &seen, conclusion));
    fold(f, JOB_IN_PROGRESS, NULL, "2");
    assert_false(state_of(f, "1", &seen, conclusion));
}

static void one_unreadable_job_leaves_the_connection_usable(void **state)
{
    struct redis_fixture *f = *state;
    struct job_list jobs = { NULL, 0 };
    fold(f, JOB_COMPLETED, "failure", "1");
    command(f, "SADD", "head:0123456789abcdef/org/four", "a/b/c/d/e");
    command(f, "SET", "job:a/b/c/d/e", "no hash");
    assert_int_equal(
        jobs_of_head(f->redis, STR_LIT("0123456789abcdef"), STR_LIT("org/four"), &jobs, NULL),
        ERR_REFUSE);
    command(f, "SREM", "head:0123456789abcdef/org/four", "a/b/c/d/e");
    assert_int_equal(
        jobs_of_head(f->redis, STR_LIT("0123456789abcdef"), STR_LIT("org/four"), &jobs, NULL), OK);
    assert_int_equal(jobs.n, 1);
    job_list_clear(&jobs);
}

static void many_jobs_of_a_delivery_come_without_their_long_texts(void **state)
{
    struct redis_fixture *f = *state;
    struct job_list jobs = { NULL, 0 };
    fold(f, JOB_COMPLETED, "failure", "1");
    assert_int_equal(jobs_of_delivery(f->redis, STR_LIT("d-1"), 10, 1, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 1);
    assert_string_equal(jobs.at[0].failed_tests, "[{}]");
    job_list_clear(&jobs);
    assert_int_equal(jobs_of_delivery(f->redis, STR_LIT("d-1"), 10, 0, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 1);
    assert_null(jobs.at[0].failed_tests);
    assert_string_equal(jobs.at[0].conclusion, "failure");
    assert_int_equal(jobs.at[0].level, 4);
    job_list_clear(&jobs);
    assert_int_equal(jobs_of_delivery(f->redis, STR_LIT("d-1"), 0, 0, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 0);
    job_list_clear(&jobs);
}

/* A nightly run may name any delivery. */
static void self_reports_push_no_job_out_of_a_delivery(void **state)
{
    struct redis_fixture *f = *state;
    struct job_list jobs = { NULL, 0 };
    struct result_record night, merged;
    enum fold_verdict verdict;
    result_record_init(&night);
    night.key = mem_dup("org%2Fbad/d-1/night/a/1-1");
    night.state = JOB_COMPLETED;
    night.event_type = mem_dup("nightly");
    night.repo = mem_dup("org/bad");
    night.delivery_id = mem_dup("d-1");
    night.run_attempt = mem_dup("1");
    assert_int_equal(job_fold_queue(f->redis, &night, NOW - 1000, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &night, NOW - 1000, &verdict, &merged, NULL), OK);
    assert_int_equal(merged.first_ms, NOW - 1000);
    fold(f, JOB_COMPLETED, "success", "1");
    assert_int_equal(jobs_of_delivery(f->redis, STR_LIT("d-1"), 10, 10, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 2);
    assert_string_equal(jobs.at[0].repo, "org/four"); /* although it came later */
    assert_string_equal(jobs.at[1].repo, "org/bad");
    job_list_clear(&jobs);
    assert_int_equal(jobs_of_delivery(f->redis, STR_LIT("d-1"), 1, 10, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 1);
    assert_string_equal(jobs.at[0].repo, "org/four");
    job_list_clear(&jobs);
    assert_int_equal(
        jobs_of_dispatch(f->redis, STR_LIT("d-1"), STR_LIT("org/bad"), 10, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 0);
    job_list_clear(&jobs);
    result_record_clear(&merged);
    result_record_clear(&night);
}

/* Pages of three: no job is passed over where two have the same time, and none comes twice. */
static void the_jobs_of_a_downstream_come_page_by_page(void **state)
{
    struct redis_fixture *f = *state;
    static const int64_t at[] = { NOW + 5, NOW + 4, NOW + 3, NOW + 3, NOW + 2, NOW + 1 };
    struct job_list jobs = { NULL, 0 };
    int64_t before = 0;
    size_t seen = 0, end;
    for (size_t i = 0; i < 6; i++) {
        struct result_record fact, merged;
        enum fold_verdict verdict;
        char key[32];
        result_record_init(&fact);
        snprintf(key, sizeof(key), "org%%2Ffour/d-1/ci/build/%zu", i);
        fact.key = mem_dup(key);
        fact.repo = mem_dup("org/four");
        fact.state = JOB_COMPLETED;
        fact.delivery_id = mem_dup("d-1");
        fact.run_attempt = mem_dup("1");
        assert_int_equal(job_fold_queue(f->redis, &fact, at[i], &times, NULL), OK);
        assert_int_equal(job_fold_collect(f->redis, &fact, at[i], &verdict, &merged, NULL), OK);
        result_record_clear(&merged);
        result_record_clear(&fact);
    }
    assert_int_equal(jobs_of_repo(f->redis, STR_LIT("Org/Four"), false, 10, &jobs, NULL), OK);
    assert_int_equal(jobs.n, 6);
    do {
        size_t i = job_list_page(&jobs, before, 3, &end);
        assert_int_equal(i, seen);
        for (; i < end; i++)
            assert_int_equal(jobs.at[i].last_ms, at[seen++]);
        before = jobs.at[end - 1].last_ms;
    } while (end < jobs.n);
    assert_int_equal(seen, 6);
    assert_int_equal(job_list_page(&jobs, at[5], 3, &end), 6); /* and nothing behind the last */
    assert_int_equal(end, 6);
    job_list_clear(&jobs);
}

static void done(struct redis_fixture *f, int64_t at_ms, int64_t no_conclusion,
                 struct result_record *merged)
{
    struct result_record fact;
    enum fold_verdict verdict;
    result_record_init(&fact);
    fact.key = mem_dup(KEY);
    fact.state = JOB_COMPLETED;
    fact.conclusion = mem_dup("failure");
    fact.no_conclusion = no_conclusion;
    fact.repo = mem_dup("org/four");
    fact.delivery_id = mem_dup("d-1");
    fact.run_attempt = mem_dup("1");
    assert_int_equal(job_fold_queue(f->redis, &fact, at_ms, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &fact, at_ms, &verdict, merged, NULL), OK);
    result_record_clear(&fact);
}

/* The first report counts, whichever is folded first. */
static void that_none_was_reported_goes_with_the_conclusion(void **state)
{
    struct redis_fixture *f = *state;
    struct result_record merged;
    const int64_t first[] = { 1, -1 };
    for (int turn = 0; turn < 4; turn++) {
        int64_t wanted = first[turn / 2];
        redis_fixture_consistent(state);
        for (int i = 0; i < 2; i++) {
            bool is_first = i == turn % 2;
            done(f, is_first ? NOW : NOW + 1000, is_first ? wanted : -wanted, &merged);
            if (i == 0)
                result_record_clear(&merged);
        }
        assert_string_equal(merged.conclusion, "failure");
        assert_int_equal(merged.no_conclusion, wanted);
        result_record_clear(&merged);
    }
}

/* The script answers what differs from the fact: the job of attempt 2 is none of attempt 1's. */
static void what_a_late_fact_of_an_earlier_attempt_gives_is_the_job_as_it_is(void **state)
{
    struct redis_fixture *f = *state;
    struct result_record late, merged;
    enum fold_verdict verdict;
    fold(f, JOB_COMPLETED, "success", "2");
    result_record_init(&late);
    late.key = mem_dup(KEY);
    late.state = JOB_IN_PROGRESS;
    late.repo = mem_dup("org/four");
    late.delivery_id = mem_dup("d-1");
    late.run_id = mem_dup("77");
    late.run_attempt = mem_dup("1");
    late.environment = mem_dup("mi300");
    late.total = 9;
    assert_int_equal(job_fold_queue(f->redis, &late, NOW + 1000, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &late, NOW + 1000, &verdict, &merged, NULL), OK);
    assert_int_equal(merged.state, JOB_COMPLETED);
    assert_string_equal(merged.run_attempt, "2");
    assert_string_equal(merged.conclusion, "success");
    assert_string_equal(merged.failed_tests, "[{}]");
    assert_null(merged.environment);
    assert_int_equal(merged.total, -1);
    assert_int_equal(merged.in_progress_ms, -1);
    assert_int_equal(merged.completed_ms, NOW);
    assert_int_equal(merged.first_ms, NOW);
    assert_int_equal(merged.last_ms, NOW + 1000);
    assert_true(merged.level == 4 && merged.top_level == 4);
    result_record_clear(&merged);
    result_record_clear(&late);
}

static void report(struct redis_fixture *f, const char *delivery, const char *run, const char *repo,
                   int64_t pr)
{
    struct result_record night, merged;
    enum fold_verdict verdict;
    char key[200];
    result_record_init(&night);
    snprintf(key, sizeof(key), "%s/%s/night/a/1-1",
             strcmp(repo, "org/bad") ? "org%2Ffour" : "org%2Fbad", delivery);
    night.key = mem_dup(key);
    night.state = JOB_COMPLETED;
    night.event_type = mem_dup("nightly");
    night.head_sha = mem_dup("0123456789abcdef");
    night.repo = mem_dup(repo);
    night.delivery_id = mem_dup(delivery);
    night.run_id = mem_dup(run);
    night.run_attempt = mem_dup("1");
    night.pr_number = pr;
    assert_int_equal(job_fold_queue(f->redis, &night, NOW, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &night, NOW, &verdict, &merged, NULL), OK);
    result_record_clear(&merged);
    result_record_clear(&night);
}

/* Its commit is a claim: no check run of that commit looks at it, nor does its pull request. */
static void a_self_report_is_no_job_of_the_commit_that_it_claims(void **state)
{
    struct redis_fixture *f = *state;
    struct job_list jobs = { NULL, 0 };
    const struct redis_value *v;
    fold(f, JOB_COMPLETED, "success", "1");
    report(f, "n-1", "9", "org/four", 42);
    assert_int_equal(
        jobs_of_head(f->redis, STR_LIT("0123456789abcdef"), STR_LIT("org/four"), &jobs, NULL), OK);
    assert_int_equal(jobs.n, 1);
    assert_string_equal(jobs.at[0].key, KEY);
    job_list_clear(&jobs);
    assert_int_equal(
        redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("EXISTS"), STR_LIT("pr:42")), NULL), OK);
    assert_int_equal(v->integer, 0);
}

static size_t jobs_with_their_run(struct redis_fixture *f, const char *delivery)
{
    struct job_list jobs = { NULL, 0 };
    assert_int_equal(jobs_of_delivery(f->redis, str_of(delivery), 10, 10, &jobs, NULL), OK);
    assert_int_equal(jobs_of_self_run_add(f->redis, &jobs, NULL), OK);
    size_t n = jobs.n;
    assert_true(n == 0 || strcmp(jobs.at[0].delivery_id, delivery) == 0);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(jobs.at[i].key, jobs.at[k].key);
    job_list_clear(&jobs);
    return n;
}

static void the_jobs_of_a_nightly_run_are_found_under_each_of_its_deliveries(void **state)
{
    struct redis_fixture *f = *state;
    report(f, "n-1", "b/7", "org/four", 0);
    report(f, "n-2", "b/7", "ORG/four", 0);
    report(f, "n-3", "b/8", "org/four", 0);
    report(f, "n-4", "b/7", "org/bad", 0);
    fold(f, JOB_COMPLETED, "success", "1"); /* of run 77, which was dispatched */
    report(f, "n-5", "77", "org/four", 0);
    assert_int_equal(jobs_with_their_run(f, "n-1"), 2);
    assert_int_equal(jobs_with_their_run(f, "n-2"), 2);
    assert_int_equal(jobs_with_their_run(f, "n-3"), 1);
    assert_int_equal(jobs_with_their_run(f, "n-4"), 1);
    assert_int_equal(jobs_with_their_run(f, "n-5"), 1);
    assert_int_equal(jobs_with_their_run(f, "d-1"), 1);
    assert_int_equal(jobs_with_their_run(f, "unknown"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_state_of_an_attempt_is_told, redis_fixture_consistent),
        cmocka_unit_test_setup(another_attempt_under_the_same_key_says_nothing,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(the_jobs_of_a_downstream_come_page_by_page,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(one_unreadable_job_leaves_the_connection_usable,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(self_reports_push_no_job_out_of_a_delivery,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(that_none_was_reported_goes_with_the_conclusion,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(what_a_late_fact_of_an_earlier_attempt_gives_is_the_job_as_it_is,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_self_report_is_no_job_of_the_commit_that_it_claims,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(the_jobs_of_a_nightly_run_are_found_under_each_of_its_deliveries,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(many_jobs_of_a_delivery_come_without_their_long_texts,
                               redis_fixture_consistent),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

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
#include "common/view/lease.h"
#include "common/view/overdue.h"
#include "tests/unit/support/lease_runs_out.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW        1795231200000LL
#define OVERDUE_MS 1000

static const struct view_times times = { .ttl_s = 3000,
                                         .overdue_ms = OVERDUE_MS,
                                         .quota = 1 << 30 };

static void fold(struct redis_fixture *f, const char *key, enum job_state reported,
                 const char *attempt, int64_t received_ms)
{
    struct result_record fact, merged;
    enum fold_verdict verdict;
    result_record_init(&fact);
    fact.key = mem_dup(key);
    fact.state = reported;
    fact.repo = mem_dup("Org/Four");
    fact.level = 4;
    fact.head_sha = mem_dup("0123456789abcdef");
    fact.pr_number = 7;
    fact.delivery_id = mem_dup("d-1");
    fact.workflow_name = mem_dup("ci");
    fact.job_name = mem_dup("42");
    fact.check_run_id = mem_dup("own-id");
    fact.run_id = mem_dup("77");
    fact.run_attempt = mem_dup(attempt);
    fact.dispatched_ms = 5;
    assert_int_equal(job_fold_queue(f->redis, &fact, received_ms, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &fact, received_ms, &verdict, &merged, NULL), OK);
    result_record_clear(&merged);
    result_record_clear(&fact);
}

/* in_progress, and out of time after_ms from NOW. */
static void start_job(struct redis_fixture *f, const char *key, int64_t after_ms)
{
    fold(f, key, JOB_IN_PROGRESS, "1", NOW - OVERDUE_MS + after_ms);
}

static int64_t take_at(struct redis_fixture *f, int64_t now_ms, size_t most,
                       struct overdue_list *list)
{
    assert_int_equal(overdue_take(f->redis, now_ms, most, list, NULL), OK);
    return list->past;
}

static void finish(struct redis_fixture *f, const struct overdue_list *list)
{
    assert_int_equal(lease_finish(f->redis, LEASE_OVERDUE, str_of(list->at[0].job.key),
                                  list->expires_ms, list->at[0].deadline_ms, NULL),
                     OK);
}

static size_t count_at(struct redis_fixture *f, int64_t now_ms)
{
    struct overdue_list list;
    take_at(f, now_ms, 100, &list);
    size_t n = list.n;
    overdue_list_clear(&list);
    return n;
}

static void only_a_job_past_its_time_is_taken(void **state)
{
    struct redis_fixture *f = *state;
    struct overdue_list list;
    start_job(f, "a/late", -1);
    start_job(f, "a/in-time", 1);
    fold(f, "a/ended", JOB_IN_PROGRESS, "1", NOW - 2 * OVERDUE_MS);
    fold(f, "a/ended", JOB_COMPLETED, "1", NOW);
    assert_int_equal(take_at(f, NOW, 100, &list), 1);
    assert_int_equal(list.n, 1);
    const struct result_record *job = &list.at[0].job;
    assert_int_equal(list.at[0].deadline_ms, NOW - 1);
    assert_string_equal(job->key, "a/late");
    assert_string_equal(job->repo, "Org/Four");
    assert_string_equal(job->job_name, "42");
    assert_string_equal(job->run_attempt, "1");
    assert_int_equal(job->level, 4);
    assert_int_equal(job->pr_number, 7);
    assert_int_equal(job->dispatched_ms, 5);
    overdue_list_clear(&list);
}

static void two_sweepers_never_take_the_same_job(void **state)
{
    struct redis_fixture *f = *state;
    struct overdue_list list[3];
    char key[16];
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof(key), "a/%d", i);
        start_job(f, key, -10 + i);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(take_at(f, NOW, 2, &list[i]), 5);
    assert_int_equal(list[0].n, 2);
    assert_int_equal(list[1].n, 2);
    assert_int_equal(list[2].n, 1);
    assert_string_equal(list[0].at[0].job.key, "a/0");
    assert_string_equal(list[1].at[0].job.key, "a/2");
    assert_string_equal(list[2].at[0].job.key, "a/4");
    for (int i = 0; i < 3; i++)
        overdue_list_clear(&list[i]);
}

static void what_a_dead_sweeper_took_is_taken_again(void **state)
{
    struct redis_fixture *f = *state;
    start_job(f, "a/late", -1);
    assert_int_equal(count_at(f, NOW), 1);
    leases_end_in(f->redis, "zombies", 60000);
    assert_int_equal(count_at(f, NOW), 0);
    leases_end_in(f->redis, "zombies", -1);
    assert_int_equal(count_at(f, NOW), 1);
}

static void what_was_published_is_not_taken_again(void **state)
{
    struct redis_fixture *f = *state;
    struct overdue_list list;
    start_job(f, "a/late", -1);
    take_at(f, NOW, 1, &list);
    finish(f, &list);
    finish(f, &list);
    overdue_list_clear(&list);
    assert_int_equal(take_at(f, NOW, 1, &list), 0);
    assert_int_equal(list.n, 0);
    overdue_list_clear(&list);
}

static void a_later_attempt_outlives_the_end_of_the_earlier(void **state)
{
    struct redis_fixture *f = *state;
    struct overdue_list list;
    start_job(f, "a/late", -1);
    take_at(f, NOW, 1, &list);
    fold(f, "a/late", JOB_IN_PROGRESS, "2", NOW + 5);
    finish(f, &list);
    overdue_list_clear(&list);
    int64_t late = NOW + 5 + OVERDUE_MS;
    assert_int_equal(take_at(f, late, 1, &list), 1);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.at[0].job.run_attempt, "2");
    assert_int_equal(list.at[0].deadline_ms, NOW + 5 + OVERDUE_MS);
    overdue_list_clear(&list);
}

static void nothing_is_taken_while_the_view_is_rebuilt(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    start_job(f, "a/late", -1);
    assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("DEL"), STR_LIT("epoch")), NULL),
                     OK);
    assert_int_equal(count_at(f, NOW), 0);
    assert_int_equal(consistent_view(f->redis), 0);
    assert_int_equal(count_at(f, NOW), 1);
}

static void a_job_that_the_view_has_forgotten_is_forgotten(void **state)
{
    struct redis_fixture *f = *state;
    struct overdue_list list;
    const struct redis_value *v;
    start_job(f, "a/late", -1);
    assert_int_equal(
        redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("DEL"), STR_LIT("job:a/late")), NULL), OK);
    assert_int_equal(take_at(f, NOW, 1, &list), 0);
    assert_int_equal(list.n, 0);
    overdue_list_clear(&list);
}

static void what_is_no_job_stops_no_other(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    start_job(f, "a/broken", -2);
    start_job(f, "a/late", -1);
    assert_int_equal(
        redis_call(f->redis, &v,
                   REDIS_ARGS(STR_LIT("SET"), STR_LIT("job:a/broken"), STR_LIT("text")), NULL),
        OK);
    assert_int_equal(count_at(f, NOW), 1);
    leases_end_in(f->redis, "zombies", -1);
    assert_int_equal(count_at(f, NOW), 1);
}

static void redis_unavailable_is_worth_a_retry(void **state)
{
    (void)state;
    struct redis *nobody;
    struct redis_options options = { .endpoint = "127.0.0.1:1" };
    struct overdue_list list = { .at = NULL };
    assert_int_equal(redis_new(&nobody, &options, NULL), OK);
    assert_int_equal(overdue_take(nobody, NOW, 1, &list, NULL), ERR_RETRY);
    assert_null(list.at);
    redis_free(nobody);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_a_job_past_its_time_is_taken, redis_fixture_consistent),
        cmocka_unit_test_setup(two_sweepers_never_take_the_same_job, redis_fixture_consistent),
        cmocka_unit_test_setup(what_a_dead_sweeper_took_is_taken_again, redis_fixture_consistent),
        cmocka_unit_test_setup(what_was_published_is_not_taken_again, redis_fixture_consistent),
        cmocka_unit_test_setup(a_later_attempt_outlives_the_end_of_the_earlier,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(nothing_is_taken_while_the_view_is_rebuilt,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_job_that_the_view_has_forgotten_is_forgotten,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(what_is_no_job_stops_no_other, redis_fixture_consistent),
        cmocka_unit_test(redis_unavailable_is_worth_a_retry),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

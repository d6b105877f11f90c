/* Against a real redis-server of its own: which dispatch the aggregate of a commit is about, and
 * what is kept of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/model/ids.h"
#include "common/view/dispatches.h"
#include "common/view/indexes.h"
#include "common/view/runs.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW  1795231200000LL
#define SHA  "0123456789abcdef"
#define REPO "Org/Four"

static const struct view_times times = { .ttl_s = 3000, .overdue_ms = 21600000, .quota = 1 << 30 };

static struct outcome outcome_of(const char *delivery, const char *action, int64_t received_ms)
{
    struct outcome o = { .level = 4, .pr_number = 7, .received_ms = received_ms };
    strcpy(o.delivery_id, delivery);
    strcpy(o.repo, REPO);
    strcpy(o.head_sha, SHA);
    strcpy(o.event_type, "pull_request");
    strcpy(o.action, action);
    o.at_ms = received_ms + 50;
    return o;
}

static void fold(struct redis_fixture *f, const struct outcome *o)
{
    assert_int_equal(dispatch_fold_queue(f->redis, o, &times, NULL), OK);
    assert_int_equal(view_fold_collect(f->redis, NULL), OK);
}

/* The delivery that is found, or "". */
static const char *found_in(struct redis_fixture *f, struct dispatch_view *view)
{
    bool found = false;
    *view = (struct dispatch_view){ .delivery = "" };
    assert_int_equal(
        dispatch_of_head(f->redis, STR_LIT(SHA), STR_LIT("org/four"), &found, view, NULL), OK);
    return found ? view->delivery : "";
}

static void assert_found(struct redis_fixture *f, const char *delivery)
{
    struct dispatch_view view;
    assert_string_equal(found_in(f, &view), delivery);
}

static void the_newest_delivery_is_found_whatever_the_order(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome newer = outcome_of("d-2", "reopened", NOW + 1000);
    struct outcome older = outcome_of("d-1", "opened", NOW);
    struct dispatch_view view;
    assert_found(f, "");
    fold(f, &newer);
    fold(f, &older);
    assert_string_equal(found_in(f, &view), "d-2");
    assert_string_equal(view.outcome, "dispatched");
    assert_string_equal(view.repo, REPO);
    assert_int_equal(view.pr, 7);
    assert_int_equal(view.dispatched_ms, NOW + 1050);
}

/* A dispatcher died between the call and its outcome: the next one says that it is a duplicate. */
static void a_duplicate_tells_of_the_call_and_hides_no_outcome_of_it(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome waits = outcome_of("d-1", "opened", NOW), sent = waits, duplicate = waits;
    struct dispatch_view view;
    waits.outcome = OUTCOME_WAITING;
    duplicate.outcome = OUTCOME_DUPLICATE;
    duplicate.http_status = 204;
    duplicate.attempt = 2;
    fold(f, &duplicate);
    fold(f, &waits);
    assert_string_equal(found_in(f, &view), "d-1");
    assert_string_equal(view.outcome, "dispatched");
    assert_int_equal(view.http_status, 204);
    assert_int_equal(view.attempt, 2);
    assert_int_equal(view.dispatched_ms, NOW + 50);
    sent.http_status = 200;
    fold(f, &sent);
    fold(f, &duplicate);
    assert_string_equal(found_in(f, &view), "d-1");
    assert_int_equal(view.http_status, 200);
}

static void who_has_to_report_and_has_not_in_time_has_never_reported(void **state)
{
    (void)state;
    struct dispatch_view d = { .level = 4, .outcome = "dispatched", .dispatched_ms = NOW };
    assert_int_equal(dispatch_report_due_ms(&d, 1000), NOW + 1000);
    assert_false(dispatch_never_reported(&d, 0, 1000, NOW + 999));
    assert_true(dispatch_never_reported(&d, 0, 1000, NOW + 1000));
    assert_false(dispatch_never_reported(&d, 1, 1000, NOW + 1000));
    d.level = 2;
    assert_true(dispatch_never_reported(&d, 0, 1000, NOW + 1000));
    d.level = 1;
    assert_false(dispatch_never_reported(&d, 0, 1000, NOW + 1000));
    d.level = 4;
    strcpy(d.action, "closed");
    assert_int_equal(dispatch_report_due_ms(&d, 1000), 0);
    strcpy(d.action, "opened");
    static const char *const none[] = { "failed", "superseded", "skipped" };
    for (size_t i = 0; i < 3; i++) {
        strcpy(d.outcome, none[i]);
        assert_int_equal(dispatch_report_due_ms(&d, 1000), 0);
    }
    d = (struct dispatch_view){ .level = 4, .outcome = "waiting", .at_ms = NOW };
    assert_int_equal(dispatch_report_due_ms(&d, 1000), NOW + 1000);
}

static void what_waits_says_when_it_is_tried_again(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome waits = outcome_of("d-1", "opened", NOW), sent = waits;
    struct dispatch_view view;
    waits.outcome = OUTCOME_UNKNOWN;
    waits.next_ms = NOW + 10000;
    fold(f, &waits);
    assert_string_equal(found_in(f, &view), "d-1");
    assert_int_equal(view.next_ms, NOW + 10000);
    assert_true(dispatch_is_open(&view));
    fold(f, &sent);
    assert_string_equal(found_in(f, &view), "d-1");
    assert_int_equal(view.next_ms, 0);
}

static void closed_pushes_and_lower_tiers_do_not_count(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome closed = outcome_of("d-1", "closed", NOW), push = outcome_of("d-2", "", NOW);
    struct outcome l2 = outcome_of("d-3", "opened", NOW), old = outcome_of("d-4", "", NOW);
    strcpy(push.event_type, "push");
    push.pr_number = 0;
    l2.level = 2;
    fold(f, &closed);
    fold(f, &push);
    fold(f, &l2);
    fold(f, &old); /* of before the action was stored */
    assert_found(f, "");
}

static void l3_counts_too(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome l3 = outcome_of("d-1", "opened", NOW);
    l3.level = 3;
    fold(f, &l3);
    assert_found(f, "d-1");
}

static void a_ciflow_tag_push_counts(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome tag = outcome_of("d-1", "", NOW);
    strcpy(tag.event_type, "push");
    fold(f, &tag);
    assert_found(f, "d-1");
}

static void a_superseded_delivery_counts_only_when_there_is_no_other(void **state)
{
    struct redis_fixture *f = *state;
    struct outcome late = outcome_of("d-2", "synchronize", NOW + 1000);
    late.outcome = OUTCOME_SUPERSEDED;
    fold(f, &late);
    assert_found(f, "d-2");
    struct outcome sent = outcome_of("d-1", "opened", NOW);
    fold(f, &sent);
    assert_found(f, "d-1");
}

static void the_newest_20_deliveries_of_a_commit_are_kept(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    for (int i = 0; i < 30; i++) {
        char id[16];
        snprintf(id, sizeof(id), "d-%02d", i);
        struct outcome o = outcome_of(id, "synchronize", NOW + i);
        fold(f, &o);
    }
    assert_found(f, "d-29");
    assert_int_equal(redis_call(f->redis, &v,
                                REDIS_ARGS(STR_LIT("ZCARD"), STR_LIT("sent:" SHA "/org/four")),
                                NULL),
                     OK);
    assert_int_equal(v->integer, 20);
}

static void a_delivery_is_found_by_the_beginning_of_its_id(void **state)
{
    struct redis_fixture *f = *state;
    static const int64_t day = 86400000;
    struct outcome today = outcome_of("72d3162e-b", "opened", NOW);
    struct outcome before = outcome_of("72d3162e-a", "opened", NOW - 2 * day);
    struct outcome other = outcome_of("72d3162f-a", "opened", NOW);
    struct view_index found;
    fold(f, &before);
    fold(f, &today);
    fold(f, &other);
    assert_int_equal(deliveries_by_prefix(f->redis, STR_LIT("72d3162e"), NOW + day, 3 * day / 1000,
                                          20, &found, NULL),
                     OK);
    assert_int_equal(found.n, 2);
    assert_string_equal(found.at[0].name, "72d3162e-b");
    assert_string_equal(found.at[1].name, "72d3162e-a");
    view_index_clear(&found);
    assert_int_equal(deliveries_by_prefix(f->redis, STR_LIT("72d3162"), NOW, 0, 1, &found, NULL),
                     OK);
    assert_int_equal(found.n, 1);
    view_index_clear(&found);
}

/* ---- what GitHub said of runs ---------------------------------------------------------------- */

static void what_github_said_of_a_run_is_kept(void **state)
{
    struct redis_fixture *f = *state;
    struct run_answers list;
    struct run_answer one = { .run_id = "77", .said = RUN_SAID_COMPLETED, .asked_ms = NOW };
    struct run_answer two = { .run_id = "78", .said = RUN_SAID_NO, .asked_ms = NOW + 1 };
    one.attempt = 3;
    strcpy(one.conclusion, "timed_out");
    strcpy(two.error, "404 Not Found: no such run");
    struct str sha = STR_LIT(SHA), repo = STR_LIT(REPO);
    assert_int_equal(run_answer_put(f->redis, sha, repo, &two, &times, NULL), OK);
    assert_int_equal(run_answer_put(f->redis, sha, repo, &one, &times, NULL), OK);
    assert_int_equal(run_answers_get(f->redis, sha, STR_LIT("org/four"), &list, NULL), OK);
    assert_int_equal(list.n, 2);
    const struct run_answer *found = run_answer_find(&list, "77");
    assert_int_equal(found->said, RUN_SAID_COMPLETED);
    assert_int_equal(found->attempt, 3);
    assert_int_equal(found->asked_ms, NOW);
    assert_string_equal(found->conclusion, "timed_out");
    found = run_answer_find(&list, "78");
    assert_int_equal(found->said, RUN_SAID_NO);
    assert_string_equal(found->conclusion, "");
    assert_string_equal(found->error, two.error);
    assert_null(run_answer_find(&list, "79"));
    run_answers_clear(&list);
}

/* ---- more jobs than a commit's set holds ----------------------------------------------------- */

static void fold_job(struct redis_fixture *f, const char *repo, int number)
{
    struct result_record fact, merged;
    struct buf CLEANUP(buf_clear) key;
    enum fold_verdict verdict;
    char name[16];
    snprintf(name, sizeof(name), "j%d", number);
    buf_init(&key, 1024);
    job_key(&key, str_of(repo), STR_LIT("d-1"), STR_LIT("ci"), str_of(name), STR_LIT("1"));
    result_record_init(&fact);
    fact.key = str_dup(buf_str(&key));
    fact.state = JOB_COMPLETED;
    fact.repo = mem_dup(repo);
    fact.delivery_id = mem_dup("d-1");
    fact.run_attempt = mem_dup("1");
    fact.head_sha = mem_dup(SHA);
    fact.issuer = mem_dup("me");
    assert_int_equal(job_fold_queue(f->redis, &fact, NOW + number, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &fact, NOW + number, &verdict, &merged, NULL), OK);
    result_record_clear(&merged);
    result_record_clear(&fact);
}

static void the_jobs_of_one_dispatch_are_found_beyond_those_of_the_commit(void **state)
{
    struct redis_fixture *f = *state;
    struct job_list list;
    for (int i = 0; i < HEAD_JOBS_MAX + 5; i++)
        fold_job(f, REPO, i);
    fold_job(f, "org/four2", 1);
    fold_job(f, "org/fou", 1);
    assert_int_equal(jobs_of_head(f->redis, STR_LIT(SHA), STR_LIT(REPO), &list, NULL), OK);
    assert_int_equal(list.n, HEAD_JOBS_MAX);
    job_list_clear(&list);
    assert_int_equal(
        jobs_of_dispatch(f->redis, STR_LIT("d-1"), STR_LIT("org/four"), 5000, &list, NULL), OK);
    assert_int_equal(list.n, HEAD_JOBS_MAX + 5);
    assert_string_equal(list.at[0].issuer, "me");
    job_list_clear(&list);
    assert_int_equal(jobs_of_dispatch(f->redis, STR_LIT("d-1"), STR_LIT(REPO), 10, &list, NULL),
                     OK);
    assert_int_equal(list.n, 10);
    job_list_clear(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_duplicate_tells_of_the_call_and_hides_no_outcome_of_it,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(the_newest_delivery_is_found_whatever_the_order,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(closed_pushes_and_lower_tiers_do_not_count,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(l3_counts_too, redis_fixture_consistent),
        cmocka_unit_test(who_has_to_report_and_has_not_in_time_has_never_reported),
        cmocka_unit_test_setup(what_waits_says_when_it_is_tried_again, redis_fixture_consistent),
        cmocka_unit_test_setup(a_ciflow_tag_push_counts, redis_fixture_consistent),
        cmocka_unit_test_setup(a_superseded_delivery_counts_only_when_there_is_no_other,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_delivery_is_found_by_the_beginning_of_its_id,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(the_newest_20_deliveries_of_a_commit_are_kept,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(what_github_said_of_a_run_is_kept, redis_fixture_consistent),
        cmocka_unit_test_setup(the_jobs_of_one_dispatch_are_found_beyond_those_of_the_commit,
                               redis_fixture_consistent),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}

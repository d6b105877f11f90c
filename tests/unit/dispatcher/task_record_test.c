/* Which tasks of a record leave together, and when the record ends. The worker is a fake: it notes
 * what is put, parked and ended. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "dispatcher/task_record.h"

#define DELIVERY "9d619547-4191-4a7b-807b-179e341c9a29"
#define SHA      "0123456789abcdef0123456789abcdef01234567"
#define KEY      "pytorch/pytorch#17"
#define MINUTE   60000

static const char payload[] = "{\"repository\":{\"full_name\":\"pytorch/pytorch\"}}";
static struct dispatcher dispatcher;

/* ---- the worker ---- */

struct written {
    char where[32]; /* a delay topic, "back", or the class in the DLQ */
    char repos[256], mark[32];
    int64_t attempt, wait_ms;
    const char *value;
};
static struct {
    struct work parts[TASK_REPOS_MAX];
    size_t n, done, dropped;
    bool lost, cannot_park;
    struct written at[TASK_REPOS_MAX];
    size_t n_written;
    char error[256]; /* of the first in the DLQ */
} worker;

static void note(const char *where, const struct headers *headers, int64_t wait_ms,
                 const char *value)
{
    struct written *w = &worker.at[worker.n_written++];
    *w = (struct written){ .wait_ms = wait_ms,
                           .value = value,
                           .attempt = headers_get_i64(headers, "attempt", -1) };
    str_copy(w->where, sizeof(w->where), str_of(where));
    str_copy(w->repos, sizeof(w->repos), headers_get(headers, "repos"));
    str_copy(w->mark, sizeof(w->mark), headers_get(headers, "maybe_duplicate"));
}

struct work *work_share(struct work *work)
{
    struct work *part = &worker.parts[worker.n++];
    part->record = work->record;
    return part;
}

void work_put(struct work *work, const struct post *post)
{
    (void)work;
    assert_int_equal(post->topic, TOPIC_DISPATCH_L4);
    assert_true(str_is(post->key, KEY));
    note("back", post->headers, 0, post->value.ptr);
}

bool work_can_park(const struct work *work)
{
    (void)work;
    return !worker.cannot_park;
}

bool work_park(struct work *work, const struct park *park)
{
    assert_int_equal(headers_get_i64(park->headers, "attempt", -1), park->attempt);
    note(park->label, park->headers, park->wait_ms, work->record->value.ptr);
    return true;
}

void work_dead_as(struct work *work, const struct headers *headers, const char *class,
                  const char *error)
{
    if (!worker.error[0])
        str_copy(worker.error, sizeof(worker.error), str_of(error));
    note(class, headers, 0, work->record->value.ptr);
}

void work_dead(struct work *work, const char *class, const char *error)
{
    work_dead_as(work, &work->record->headers, class, error);
}

void work_done(struct work *work)
{
    (void)work;
    worker.done++;
}

void work_drop(struct work *work)
{
    (void)work;
    worker.dropped++;
}

bool work_is_lost(const struct work *work)
{
    (void)work;
    return worker.lost;
}

/* ---- a record in hand ---- */

struct fixture {
    struct sender s;
    struct record record;
    struct task_record *r;
};

static struct fixture *take(void **state, const char *repos)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct task task = { .event = { .kind = EVENT_PULL_REQUEST,
                                          .action = STR_LIT("opened"),
                                          .delivery = STR_LIT(DELIVERY),
                                          .head_sha = STR_LIT(SHA),
                                          .source = STR_LIT("webhook"),
                                          .pr = 17,
                                          .received_ms = 1 },
                               .level = 4,
                               .kind = TASK_DISPATCH,
                               .attempt = 1,
                               .event_key = STR_LIT(KEY) };
    memset(&worker, 0, sizeof(worker));
    dispatcher.upstream_repo = STR_LIT("pytorch/pytorch");
    f->s = (struct sender){ .d = &dispatcher, .level = 4, .tier = STR_LIT("L4") };
    f->record = (struct record){ .key = STR_LIT(KEY), .value = str_of(payload) };
    headers_init(&f->record.headers);
    task_to_headers(&task, str_of(repos), &f->record.headers);
    worker.parts[worker.n++].record = &f->record;
    f->r = task_record_take(&f->s, &worker.parts[0]);
    *state = f;
    return f;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

/* One that is decided, to be called again in wait_ms. */
static void wait_for(struct fixture *f, size_t i, int64_t wait_ms, unsigned because)
{
    struct task_in_hand *t = f->r->tasks[i];
    t->state = TASK_DECIDED;
    t->decision = (struct dispatch_decision){ .next = DISPATCH_PARK,
                                              .until_ms = clock_mono_ms() + wait_ms,
                                              .because = because };
}

/* One that is in its lane again after its first call, which nobody knows the end of. */
static void was_called(struct fixture *f, size_t i, int64_t wait_ms)
{
    wait_for(f, i, wait_ms, FACT_FAILED);
    f->r->tasks[i]->state = TASK_IN_LANE;
    f->r->tasks[i]->decision.next = DISPATCH_WAIT;
    f->r->tasks[i]->task.attempt = 2;
    f->r->tasks[i]->task.maybe_duplicate = MARK_ANSWER_UNSEEN;
}

static void parks(struct fixture *f, size_t i)
{
    task_record_leave(f->r->tasks[i], EXIT_PARK);
}

static void ends(struct fixture *f, size_t i)
{
    work_done(f->r->tasks[i]->work);
    task_record_end(f->r->tasks[i], true);
}

static void written_is(size_t i, const char *where, const char *repos)
{
    assert_true(i < worker.n_written);
    assert_string_equal(worker.at[i].where, where);
    assert_string_equal(worker.at[i].repos, repos);
    assert_ptr_equal(worker.at[i].value, payload); /* the payload is never copied */
}

/* ---- the tests ---- */

static void each_downstream_is_a_task_of_its_own(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    assert_string_equal(worker.error, "");
    assert_int_equal(f->r->n, 3);
    assert_int_equal(worker.n, 3);
    assert_true(str_is(f->r->tasks[2]->task.repo, "org/c"));
    for (size_t i = 0; i < 3; i++)
        ends(f, i);
}

static void an_unreadable_record_goes_to_the_dlq_and_is_done(void **state)
{
    struct fixture *f = take(state, "no repository");
    assert_null(f->r);
    written_is(0, "poison", "no repository");
    assert_int_equal(worker.done, 1);
}

static void what_waits_alike_is_parked_as_one_record_at_the_latest_moment(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    wait_for(f, 0, 20000, FACT_FAILED);
    wait_for(f, 1, 50000, FACT_FAILED);
    wait_for(f, 2, 30000, FACT_FAILED);
    for (size_t i = 0; i < 3; i++)
        parks(f, i);
    task_records_finish(&f->s);
    assert_int_equal(worker.n_written, 1);
    written_is(0, "delay.1m", "org/a,org/b,org/c");
    assert_in_range(worker.at[0].wait_ms, 45000, 50000);
    assert_int_equal(worker.at[0].attempt, 1);
}

static void another_attempt_mark_reason_or_delay_topic_is_another_record(void **state)
{
    struct fixture *f = take(state, "org/a,org/attempt,org/mark,org/reason,org/topic,org/b");
    for (size_t i = 0; i < 6; i++)
        wait_for(f, i, i == 4 ? 5 * MINUTE : MINUTE, i == 3 ? FACT_SLOW : FACT_FAILED);
    f->r->tasks[1]->task.attempt = 2;
    f->r->tasks[2]->task.maybe_duplicate = MARK_ANSWER_UNSEEN;
    for (size_t i = 0; i < 6; i++)
        parks(f, i);
    task_records_finish(&f->s);
    assert_int_equal(worker.n_written, 5);
    written_is(0, "delay.1m", "org/a,org/b");
    written_is(1, "delay.1m", "org/attempt");
    assert_int_equal(worker.at[1].attempt, 2);
    written_is(2, "delay.1m", "org/mark");
    assert_string_equal(worker.at[2].mark, "answer_unseen");
    written_is(3, "delay.1m", "org/reason");
    written_is(4, "delay.10m", "org/topic");
    assert_string_equal(worker.at[0].mark, "");
}

static void what_goes_back_is_one_record_whatever_it_waited_for(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c,org/parked");
    wait_for(f, 1, MINUTE, FACT_FAILED);
    wait_for(f, 2, 5 * MINUTE, FACT_SLOW);
    wait_for(f, 3, MINUTE, FACT_FAILED);
    for (size_t i = 0; i < 3; i++)
        task_record_leave(f->r->tasks[i], EXIT_BACK);
    parks(f, 3);
    task_records_finish(&f->s);
    assert_int_equal(worker.n_written, 2);
    written_is(0, "back", "org/a,org/b,org/c");
    written_is(1, "delay.1m", "org/parked");
}

static void each_that_is_refused_has_a_record_of_its_own_in_the_dlq(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    f->r->tasks[2]->task.maybe_duplicate = MARK_NO_CLAIM;
    task_record_dead(f->r->tasks[0], "refused");
    task_record_dead(f->r->tasks[2], "refused");
    assert_int_equal(worker.n_written, 2);
    written_is(0, "refused", "org/a");
    written_is(1, "refused", "org/c");
    assert_string_equal(worker.at[1].mark, "no_claim");
    for (size_t i = 0; i < 3; i++)
        ends(f, i);
}

static void nothing_leaves_while_a_task_has_something_to_do_here(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    wait_for(f, 0, MINUTE, FACT_FAILED);
    wait_for(f, 2, MINUTE, FACT_FAILED);
    parks(f, 0);
    parks(f, 2);
    task_records_finish(&f->s);
    assert_int_equal(worker.n_written, 0);
    ends(f, 1);
    task_records_finish(&f->s);
    written_is(0, "delay.1m", "org/a,org/c");
    assert_int_equal(worker.n_written, 1);
}

static void a_record_is_done_when_its_last_task_is(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    ends(f, 0);
    wait_for(f, 1, MINUTE, FACT_FAILED);
    parks(f, 1);
    assert_int_equal(worker.done, 1);
    ends(f, 2);
    assert_int_equal(worker.done, 2);
    task_records_finish(&f->s);
    assert_int_equal(worker.done, 3);
    assert_int_equal(worker.dropped, 0);
    assert_null(f->s.leaving);
}

static void what_is_anothers_by_now_is_dropped_and_not_written(void **state)
{
    struct fixture *f = take(state, "org/a,org/b");
    for (size_t i = 0; i < 2; i++) {
        wait_for(f, i, MINUTE, FACT_FAILED);
        parks(f, i);
    }
    worker.lost = true;
    task_records_finish(&f->s);
    assert_int_equal(worker.n_written, 0);
    assert_int_equal(worker.dropped, 2);
    assert_int_equal(worker.done, 0);
}

static void what_is_forgotten_leaves_nothing_behind(void **state)
{
    struct fixture *f = take(state, "org/a,org/b");
    for (size_t i = 0; i < 2; i++)
        wait_for(f, i, MINUTE, FACT_FAILED);
    parks(f, 0);
    parks(f, 1);
    assert_non_null(f->s.leaving);
    struct task_in_hand *last = f->r->tasks[1];
    task_record_end(f->r->tasks[0], false);
    task_record_end(last, false);
    assert_null(f->s.leaving);
}

/* ---- its partition goes ---- */

static void all_are_given_back(struct fixture *f, size_t n)
{
    struct task_in_hand *tasks[TASK_REPOS_MAX];
    memcpy(tasks, f->r->tasks, sizeof(tasks));
    for (size_t i = 0; i < n; i++)
        if (tasks[i])
            task_record_give_back(tasks[i]);
    task_records_finish(&f->s);
}

static void a_record_of_which_nothing_began_is_read_again_by_the_next_owner(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    all_are_given_back(f, 3);
    assert_int_equal(worker.n_written, 0);
    assert_int_equal(worker.dropped, 3);
    assert_int_equal(worker.done, 0);
}

static void what_waits_for_a_limit_is_read_again_in_its_order(void **state)
{
    struct fixture *f = take(state, "org/a,org/b");
    wait_for(f, 0, 8000, FACT_LIMITED);
    f->r->tasks[0]->decision.next = DISPATCH_WAIT;
    f->r->tasks[0]->state = TASK_IN_LANE;
    all_are_given_back(f, 2);
    assert_int_equal(worker.n_written, 0);
    assert_int_equal(worker.dropped, 2);
}

static void of_a_record_that_had_begun_the_rest_is_written_back(void **state)
{
    struct fixture *f = take(state, "org/a,org/b,org/c");
    ends(f, 0);
    all_are_given_back(f, 3);
    assert_int_equal(worker.n_written, 1);
    written_is(0, "back", "org/b,org/c");
    assert_int_equal(worker.done, 3);
}

static void what_waits_after_its_call_keeps_moment_attempt_and_mark(void **state)
{
    struct fixture *f = take(state, "org/new,org/called");
    was_called(f, 1, 8000);
    all_are_given_back(f, 2);
    assert_int_equal(worker.dropped, 0);
    assert_int_equal(worker.n_written, 2);
    written_is(0, "back", "org/new");
    assert_int_equal(worker.at[0].attempt, 1);
    written_is(1, "delay.10s", "org/called");
    assert_in_range(worker.at[1].wait_ms, 3000, 8000);
    assert_int_equal(worker.at[1].attempt, 2);
    assert_string_equal(worker.at[1].mark, "answer_unseen");
}

static void what_is_due_or_cannot_be_parked_goes_back_with_attempt_and_mark(void **state)
{
    static const int64_t waits_ms[] = { -1, 8000 };
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = take(state, "org/called");
        worker.cannot_park = waits_ms[i] > 0;
        was_called(f, 0, waits_ms[i]);
        all_are_given_back(f, 1);
        assert_int_equal(worker.n_written, 1);
        written_is(0, "back", "org/called");
        assert_int_equal(worker.at[0].attempt, 2);
        assert_string_equal(worker.at[0].mark, "answer_unseen");
        if (i == 0)
            teardown(state);
    }
}

static void what_is_anothers_already_is_dropped_at_once_also_after_its_call(void **state)
{
    struct fixture *f = take(state, "org/called,org/calling");
    was_called(f, 0, 8000);
    f->r->tasks[1]->state = TASK_CALLING;
    worker.lost = true;
    all_are_given_back(f, 1);
    assert_int_equal(worker.n_written, 0);
    assert_int_equal(worker.dropped, 1);
    ends(f, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_downstream_is_a_task_of_its_own, teardown),
        cmocka_unit_test_teardown(an_unreadable_record_goes_to_the_dlq_and_is_done, teardown),
        cmocka_unit_test_teardown(what_waits_alike_is_parked_as_one_record_at_the_latest_moment,
                                  teardown),
        cmocka_unit_test_teardown(another_attempt_mark_reason_or_delay_topic_is_another_record,
                                  teardown),
        cmocka_unit_test_teardown(what_goes_back_is_one_record_whatever_it_waited_for, teardown),
        cmocka_unit_test_teardown(each_that_is_refused_has_a_record_of_its_own_in_the_dlq,
                                  teardown),
        cmocka_unit_test_teardown(nothing_leaves_while_a_task_has_something_to_do_here, teardown),
        cmocka_unit_test_teardown(a_record_is_done_when_its_last_task_is, teardown),
        cmocka_unit_test_teardown(what_is_anothers_by_now_is_dropped_and_not_written, teardown),
        cmocka_unit_test_teardown(what_is_forgotten_leaves_nothing_behind, teardown),
        cmocka_unit_test_teardown(a_record_of_which_nothing_began_is_read_again_by_the_next_owner,
                                  teardown),
        cmocka_unit_test_teardown(what_waits_for_a_limit_is_read_again_in_its_order, teardown),
        cmocka_unit_test_teardown(of_a_record_that_had_begun_the_rest_is_written_back, teardown),
        cmocka_unit_test_teardown(what_waits_after_its_call_keeps_moment_attempt_and_mark,
                                  teardown),
        cmocka_unit_test_teardown(what_is_due_or_cannot_be_parked_goes_back_with_attempt_and_mark,
                                  teardown),
        cmocka_unit_test_teardown(what_is_anothers_already_is_dropped_at_once_also_after_its_call,
                                  teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What happens to a task from its decision on: the end of its claim, then what is published. Redis,
 * GitHub and the worker are fakes, which note in order what they are asked for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/actions.h"
#include "common/github/dispatch.h"
#include "dispatcher/task_record.h"
#include "role_fake.h"

#define DELIVERY "9d619547-4191-4a7b-807b-179e341c9a29"
#define SHA      "0123456789abcdef0123456789abcdef01234567"
#define KEY      "pytorch/pytorch#17"

static const char payload[] = "{\"repository\":{\"full_name\":\"pytorch/pytorch\"}}";

/* ---- fakes, which note in fake.said: "finish dispatched; put dispatches; done; " ---- */

static struct {
    struct outcome outcome; /* the last put into the topic dispatches */
    bool cannot_park;
    enum err redis, github;
    int reserved; /* calls that count as in flight before they are made */
    struct work work;
} world;

enum err claim_finish_queue(struct redis *r, const struct task *task, const char *owner,
                            const struct outcome *outcome, struct why *why)
{
    (void)r;
    (void)why;
    assert_true(task_can_be_superseded(task));
    assert_true(str_is(task->event.delivery, DELIVERY));
    assert_string_equal(owner, "me");
    say("finish %s; ", outcome_kind_name(outcome->outcome));
    return world.redis;
}

static bool may(void *opaque, struct str downstream)
{
    (void)opaque;
    (void)downstream;
    return true;
}

void github_unreserve(struct github *g, struct str repo)
{
    (void)g;
    (void)repo;
    world.reserved--;
}

enum err claim_release_queue(struct redis *r, const struct task *task, const char *owner,
                             struct why *why)
{
    (void)r;
    (void)task;
    (void)why;
    assert_string_equal(owner, "me");
    say("release; ");
    return world.redis;
}

enum err claim_end_collect(struct redis *r, struct why *why)
{
    (void)r;
    (void)why;
    return world.redis;
}

enum err dispatch_start(struct github *g, const struct dispatch *d, github_answered_fn *done,
                        void *opaque, struct why *why)
{
    (void)g;
    (void)opaque;
    assert_ptr_equal(done, task_answered);
    assert_true(str_is(d->repo, "org/a"));
    say("call; ");
    return world.github ? why_set(why, world.github, "it cannot be sent") : OK;
}

struct github_answer github_unsent(struct github *g, enum err err, const struct why *why)
{
    (void)g;
    return (struct github_answer){ .err = err, .reason = why->text };
}

enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       int64_t send_by_ms, github_answered_fn *done, void *opaque, struct why *why)
{
    (void)g;
    (void)repo;
    (void)run_id;
    (void)failed_only;
    (void)send_by_ms;
    (void)done;
    (void)opaque;
    (void)why;
    fail();
    return OK;
}

void expand_task_start(struct task_in_hand *t)
{
    (void)t;
    say("expand; ");
}

void expand_task_free(struct expand_task *e)
{
    assert_null(e);
}

void outcome_now(struct outcome *ret, const struct task *task, enum outcome_kind kind,
                 const char *reason)
{
    outcome_init(ret, task);
    ret->outcome = kind;
    ret->at_ms = clock_wall_ms();
    str_copy(ret->error, sizeof(ret->error), str_of(reason));
}

void post_outcome(struct work *work, const struct outcome *outcome)
{
    assert_ptr_equal(work, &world.work);
    world.outcome = *outcome;
    say("put %s; ", outcome_kind_name(outcome->outcome));
}

void work_put(struct work *work, const struct post *post)
{
    (void)work;
    (void)post;
    fail();
}

bool work_can_park(const struct work *work)
{
    (void)work;
    return !world.cannot_park;
}

bool work_park(struct work *work, const struct park *park)
{
    (void)work;
    say("park %s; ", park->label);
    assert_int_equal(park->attempt, 2);
    return true;
}

void work_dead_as(struct work *work, const struct headers *headers, const char *class,
                  const char *error)
{
    (void)work;
    (void)headers;
    assert_true(*error);
    say("dead %s; ", class);
}

void work_dead(struct work *work, const char *class, const char *error)
{
    (void)work;
    (void)class;
    fail_msg("%s", error);
}

struct work *work_share(struct work *work)
{
    return work;
}

bool work_is_lost(const struct work *work)
{
    (void)work;
    return false;
}

void role_progress(struct role_ctx *r)
{
    (void)r;
}

/* ---- a task whose claim was taken, as tasks_start leaves it ---- */

static struct dispatcher dispatcher;
static struct sender s;
static struct record record;

static struct task_in_hand *taken(void)
{
    struct lane_item *item = lanes_take(s.lanes, clock_mono_ms());
    struct task_in_hand *t = (struct task_in_hand *)item;
    assert_non_null(item);
    t->state = TASK_CLAIMING;
    strcpy(t->owner, "me");
    return t;
}

static int setup(void **state)
{
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
    memset(&world, 0, sizeof(world));
    role_fake_init(NULL);
    dispatcher = (struct dispatcher){ .upstream_repo = STR_LIT("pytorch/pytorch") };
    s = (struct sender){ .d = &dispatcher, .level = 4, .tier = STR_LIT("L4") };
    s.lanes = lanes_new(1, may, NULL);
    record = (struct record){ .key = STR_LIT(KEY), .value = str_of(payload) };
    headers_init(&record.headers);
    task_to_headers(&task, STR_LIT("org/a"), &record.headers);
    world.work.record = &record;
    tasks_take(&s, &world.work);
    *state = taken();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lanes_free(s.lanes);
    metrics_free(fake.metrics);
    return 0;
}

static void call(struct task_in_hand *t)
{
    const struct dispatch_decision calls = { .next = DISPATCH_CALL };
    task_follow(t, &calls);
}

static void answered(struct task_in_hand *t, enum err err, int status)
{
    const struct github_answer answer = {
        .err = err, .status = status, .reason = "as GitHub says", .sent_ms = 1795231200007
    };
    call(t);
    task_answered(t, &answer);
    tasks_finish(&s);
}

/* ---- the tests ---- */

static void a_dispatch_keeps_its_place_in_flight_and_another_task_leaves_it(void **state)
{
    struct task_in_hand *t = *state;
    t->reserved = true;
    call(t);
    assert_string_equal(fake.said, "call; ");
    assert_false(t->reserved);
    assert_int_equal(world.reserved, 0);
    t->task.kind = TASK_EXPAND; /* each of its calls takes its own */
    t->reserved = true;
    call(t);
    assert_string_equal(fake.said, "call; expand; ");
    assert_int_equal(world.reserved, -1);
    const struct dispatch_decision end = { .next = DISPATCH_END, .outcome = OUTCOME_SKIPPED };
    t->task.kind = TASK_DISPATCH;
    task_decided(t, &end);
    tasks_finish(&s);
}

static void the_claim_ends_once_before_the_outcome_is_published(void **state)
{
    answered(*state, OK, 204);
    assert_string_equal(fake.said, "call; finish dispatched; put dispatched; done; ");
    assert_true(world.outcome.at_ms == 1795231200007);
    assert_int_equal(world.outcome.http_status, 204);
    tasks_finish(&s);
    assert_string_equal(fake.said, "call; finish dispatched; put dispatched; done; ");
    assert_int_equal(s.in_flight, 0);
    assert_null(s.finishing);
}

static void without_redis_the_outcome_is_published_all_the_same(void **state)
{
    world.redis = ERR_RETRY;
    answered(*state, OK, 204);
    assert_string_equal(fake.said, "call; finish dispatched; put dispatched; done; ");
}

static void a_duplicate_says_of_the_call_what_its_claim_remembers(void **state)
{
    struct task_in_hand *t = *state;
    const struct dispatch_decision duplicate = { .next = DISPATCH_END,
                                                 .outcome = OUTCOME_DUPLICATE };
    t->owner[0] = 0; /* its claim is another's */
    t->called = (struct claim_call){ .at_ms = 1795231200007,
                                     .http_status = 202,
                                     .attempt = 3,
                                     .maybe_duplicate = MARK_ANSWER_UNSEEN };
    task_follow(t, &duplicate);
    tasks_finish(&s);
    assert_string_equal(fake.said, "put duplicate; done; ");
    assert_true(world.outcome.at_ms == 1795231200007);
    assert_int_equal(world.outcome.http_status, 202);
    assert_int_equal(world.outcome.attempt, 3);
    assert_int_equal(world.outcome.maybe_duplicate, MARK_ANSWER_UNSEEN);
}

/* A dispatcher of before stored what cannot be read. */
static void a_duplicate_of_which_nothing_is_known_is_of_now(void **state)
{
    struct task_in_hand *t = *state;
    const struct dispatch_decision duplicate = { .next = DISPATCH_END,
                                                 .outcome = OUTCOME_DUPLICATE };
    t->owner[0] = 0;
    task_follow(t, &duplicate);
    tasks_finish(&s);
    assert_in_range(world.outcome.at_ms, clock_wall_ms() - 60000, clock_wall_ms());
    assert_int_equal(world.outcome.attempt, 1);
}

static void a_refusal_gives_the_claim_back_and_goes_to_the_dlq(void **state)
{
    answered(*state, ERR_REFUSE, 404);
    assert_string_equal(fake.said, "call; release; dead refused; put failed; done; ");
    assert_string_equal(world.outcome.error, "as GitHub says");
}

static void what_may_have_been_called_before_leaves_a_claim_that_says_so(void **state)
{
    struct task_in_hand *t = *state;
    t->task.maybe_duplicate = MARK_CLAIM_EXPIRED;
    answered(t, ERR_REFUSE, 404);
    assert_string_equal(fake.said, "call; finish failed; dead refused; put failed; done; ");
    assert_int_equal(world.outcome.maybe_duplicate, MARK_CLAIM_EXPIRED);
}

static void a_call_without_an_answer_waits_in_its_lane_marked(void **state)
{
    struct task_in_hand *t = *state;
    answered(t, ERR_UNKNOWN, 503);
    assert_string_equal(fake.said, "call; finish unknown; put unknown; ");
    assert_int_equal(world.outcome.maybe_duplicate, MARK_NONE); /* that call was the first */
    assert_int_equal(t->state, TASK_IN_LANE);
    assert_int_equal(t->task.attempt, 2);
    assert_int_equal(t->task.maybe_duplicate, MARK_ANSWER_UNSEEN);
    assert_null(lanes_take(s.lanes, clock_mono_ms()));
    task_forget(t);
}

static struct dispatch_decision wait_of(int64_t wait_ms)
{
    return (struct dispatch_decision){ .next = DISPATCH_PARK,
                                       .outcome = OUTCOME_WAITING,
                                       .until_ms = clock_mono_ms() + wait_ms,
                                       .attempt = 2,
                                       .reason = "it must wait" };
}

static void a_long_wait_gives_the_claim_back_and_leaves(void **state)
{
    const struct dispatch_decision d = wait_of(50000);
    task_follow(*state, &d);
    tasks_finish(&s);
    assert_string_equal(fake.said, "release; put waiting; park delay.1m; done; ");
}

static void what_is_too_large_to_be_put_off_goes_to_the_dlq(void **state)
{
    const struct dispatch_decision d = wait_of(50000);
    world.cannot_park = true;
    task_follow(*state, &d);
    tasks_finish(&s);
    assert_string_equal(fake.said, "release; dead refused; put failed; done; ");
}

static void a_call_that_cannot_be_started_is_answered_at_once(void **state)
{
    world.github = ERR_REFUSE;
    call(*state);
    assert_int_equal(s.in_flight, 0);
    tasks_finish(&s);
    assert_string_equal(fake.said, "call; release; dead refused; put failed; done; ");
    assert_string_equal(world.outcome.error, "it cannot be sent");
}

static void what_is_held_says_nothing_and_keeps_its_place(void **state)
{
    struct task_in_hand *t = *state;
    const struct dispatch_decision hold = { .next = DISPATCH_HOLD };
    task_follow(t, &hold);
    tasks_finish(&s);
    assert_string_equal(fake.said, "");
    assert_ptr_equal(taken(), t);
    answered(t, OK, 204);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_dispatch_keeps_its_place_in_flight_and_another_task_leaves_it),
        TEST(the_claim_ends_once_before_the_outcome_is_published),
        TEST(without_redis_the_outcome_is_published_all_the_same),
        TEST(a_duplicate_says_of_the_call_what_its_claim_remembers),
        TEST(a_duplicate_of_which_nothing_is_known_is_of_now),
        TEST(a_refusal_gives_the_claim_back_and_goes_to_the_dlq),
        TEST(what_may_have_been_called_before_leaves_a_claim_that_says_so),
        TEST(a_call_without_an_answer_waits_in_its_lane_marked),
        TEST(a_long_wait_gives_the_claim_back_and_leaves),
        TEST(what_is_too_large_to_be_put_off_goes_to_the_dlq),
        TEST(a_call_that_cannot_be_started_is_answered_at_once),
        TEST(what_is_held_says_nothing_and_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

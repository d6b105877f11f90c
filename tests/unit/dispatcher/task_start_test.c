/* What becomes of a task whose turn it is, by the answer to its claim, and of one that waits for a
 * slot of a slow downstream. What follows from a decision is a fake: it notes the decision. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "dispatcher/metrics.h"
#include "dispatcher/route.h"
#include "dispatcher/sender.h"

#define REPO    "org/slow"
#define MAX_AGE (3 * 86400000LL)

static struct dispatch_decision followed;
static size_t n_followed;

void task_follow(struct task_in_hand *t, const struct dispatch_decision *decision)
{
    followed = *decision;
    n_followed++;
    lanes_end(t->s->lanes, &t->item);
}

void task_answered(void *opaque, const struct github_answer *answer)
{
    (void)opaque;
    (void)answer;
    fail();
}

double sender_jitter(struct sender *s)
{
    (void)s;
    return 0;
}

/* ---- the allowlist in force ---- */

static struct allowlist_version version;
static size_t n_held;

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    (void)f;
    n_held++;
    return &version;
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    (void)f;
    assert_ptr_equal(v, &version);
    n_held--;
}

/* ---- Redis, the worker and GitHub's limits ---- */

static struct {
    struct claim_answer claim;
    enum err redis;
    bool partition_gone;
    size_t span;
    struct metrics *metrics;
    int reserved; /* calls that count as in flight */
} world;

enum err claim_queue(struct redis *r, const struct task *task, const char *owner,
                     int64_t dispatched_ms, bool overtaken, const struct budget_bill *bill,
                     struct why *why)
{
    (void)r;
    (void)dispatched_ms;
    (void)why;
    assert_true(task_can_be_superseded(task));
    assert_null(bill);
    assert_string_equal(owner, "host-1-2.L1.1");
    (void)overtaken;
    return OK;
}

enum err claim_collect(struct redis *r, struct claim_answer *ret, struct why *why)
{
    (void)r;
    if (world.redis)
        return why_set(why, world.redis, "no answer");
    *ret = world.claim;
    return OK;
}

const char *claim_verdict_name(enum claim_verdict verdict)
{
    (void)verdict;
    return "none";
}

bool worker_may_act(const struct worker *w, int64_t since_ms)
{
    (void)w;
    (void)since_ms;
    return !world.partition_gone;
}

void worker_limit_span(struct worker *w, size_t records)
{
    (void)w;
    world.span = records;
}

struct metrics *role_metrics(const struct role_ctx *r)
{
    (void)r;
    return world.metrics;
}

struct daemon_ctx *role_daemon(const struct role_ctx *r)
{
    (void)r;
    return NULL;
}

const char *daemon_owner(const struct daemon_ctx *ctx)
{
    (void)ctx;
    return "host-1-2";
}

bool github_bill(struct github *g, struct str repo, struct gate_bill *ret,
                 struct github_answer *refused)
{
    (void)g;
    (void)repo;
    (void)refused;
    *ret = (struct gate_bill){ .shared = { .account = STR_NONE } }; /* nothing is to be paid */
    return true;
}

void task_unreserve(struct task_in_hand *t)
{
    world.reserved -= t->reserved;
    t->reserved = false;
}

static bool reserve(void *opaque, struct str downstream)
{
    (void)opaque;
    (void)downstream;
    world.reserved++;
    return true;
}

bool github_paid(struct github *g, const struct gate_bill *bill, const struct budget_answer *answer,
                 struct github_answer *refused)
{
    (void)g;
    (void)bill;
    (void)answer;
    (void)refused;
    fail();
    return false;
}

/* ---- a downstream whose only slot has been taken for longer than makes it slow ---- */

static struct task_in_hand task_of(struct sender *s, int64_t received_ms)
{
    return (struct task_in_hand){ .s = s,
                                  .task = { .event = { .kind = EVENT_PULL_REQUEST,
                                                       .received_ms = received_ms },
                                            .kind = TASK_DISPATCH,
                                            .repo = STR_LIT(REPO),
                                            .attempt = 1 } };
}

static struct dispatch_decision stuck(const char *yaml, int64_t received_ms)
{
    struct allowlist *list;
    struct dispatcher d = { .max_age_ms = MAX_AGE };
    struct sender s = { .d = &d, .lanes = lanes_new(1, reserve, NULL) };
    struct task_in_hand called = task_of(&s, received_ms), waits = task_of(&s, received_ms);
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), NULL), OK);
    version.list = list;
    n_followed = 0;
    lanes_put(s.lanes, STR_LIT(REPO), STR_LIT("pytorch/pytorch#1"), &called.item);
    assert_ptr_equal(lanes_take(s.lanes, clock_mono_ms() - 2 * LANES_SLOW_MS), &called.item);
    lanes_put(s.lanes, STR_LIT(REPO), STR_LIT("pytorch/pytorch#2"), &waits.item);
    tasks_start(&s);
    assert_int_equal(n_followed, 1);
    assert_int_equal(n_held, 0);
    assert_null(waits.item.lane);
    lanes_free(s.lanes);
    allowlist_free(list);
    return followed;
}

static void what_waits_for_a_slow_downstream_is_put_off(void **state)
{
    (void)state;
    struct dispatch_decision d = stuck("L1: [" REPO "]\n", clock_wall_ms());
    assert_int_equal(d.next, DISPATCH_PARK);
    assert_non_null(strstr(d.reason, "slow"));
}

static void what_nobody_wants_any_more_does_not_wait_for_a_slow_downstream(void **state)
{
    (void)state;
    struct dispatch_decision d = stuck("L1: [" REPO "]\n", clock_wall_ms() - MAX_AGE - 1000);
    assert_int_equal(d.next, DISPATCH_END);
    assert_string_equal(d.reason, ROUTE_TOO_OLD);
    d = stuck("L1: [org/another]\n", clock_wall_ms());
    assert_int_equal(d.next, DISPATCH_END);
    assert_string_equal(d.reason, ROUTE_NOT_LISTED);
}

/* ---- a task that is due ---- */

static void each_answer_to_a_claim_and_whose_it_is_then(void **state)
{
    static const struct {
        enum err redis;
        enum claim_verdict verdict;
        bool partition_gone;
        enum dispatch_next next;
        enum outcome_kind outcome;
        enum task_mark mark;
        bool ours;
    } rows[] = {
        { OK, CLAIM_TAKEN, false, DISPATCH_CALL, 0, MARK_NONE, true },
        { OK, CLAIM_TAKEN, true, DISPATCH_CALL, 0, MARK_NONE, true },
        { OK, CLAIM_EXPIRED, false, DISPATCH_CALL, 0, MARK_CLAIM_EXPIRED, true },
        { OK, CLAIM_FORGOTTEN, false, DISPATCH_CALL, 0, MARK_NO_CLAIM, true },
        { OK, CLAIM_BUSY, false, DISPATCH_HOLD, OUTCOME_WAITING, 0, false },
        { OK, CLAIM_DONE, false, DISPATCH_END, OUTCOME_DUPLICATE, 0, false },
        { OK, CLAIM_SUPERSEDED, false, DISPATCH_END, OUTCOME_SUPERSEDED, 0, false },
        /* Its end is stored if Redis is back by then. */
        { ERR_RETRY, CLAIM_TAKEN, false, DISPATCH_CALL, 0, MARK_NO_CLAIM, true },
        { ERR_RETRY, CLAIM_TAKEN, true, DISPATCH_HOLD, OUTCOME_WAITING, 0, true },
    };
    struct allowlist *list;
    (void)state;
    assert_int_equal(allowlist_parse(&list, "a.yml", STR_LIT("L1: [" REPO "]\n"), NULL), OK);
    version.list = list;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dispatcher d = { .max_age_ms = MAX_AGE };
        struct sender s = { .d = &d, .tier = STR_LIT("L1"), .lanes = lanes_new(1, reserve, NULL) };
        struct task_in_hand t = task_of(&s, clock_wall_ms());
        memset(&world, 0, sizeof(world));
        world.metrics = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
        world.redis = rows[i].redis;
        world.claim.verdict = rows[i].verdict;
        world.claim.call.attempt = 7;
        world.partition_gone = rows[i].partition_gone;
        n_followed = 0;
        lanes_put(s.lanes, STR_LIT(REPO), STR_LIT("pytorch/pytorch#1"), &t.item);
        tasks_start(&s);
        assert_int_equal(n_followed, 1);
        assert_int_equal(world.reserved, 0); /* task_follow makes no call here */
        assert_int_equal(followed.next, rows[i].next);
        assert_int_equal(followed.outcome, rows[i].outcome);
        assert_int_equal(followed.mark, rows[i].mark);
        assert_int_equal(t.owner[0] != 0, rows[i].ours);
        if (followed.outcome == OUTCOME_DUPLICATE)
            assert_int_equal(t.called.attempt, 7);
        assert_int_equal(s.redis_unavailable, rows[i].redis != OK);
        assert_int_equal(world.span, rows[i].redis ? SENDER_IN_HAND_RECORDS : 0);
        metrics_free(world.metrics);
        lanes_free(s.lanes);
    }
    allowlist_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_to_a_claim_and_whose_it_is_then),
        cmocka_unit_test(what_waits_for_a_slow_downstream_is_put_off),
        cmocka_unit_test(what_nobody_wants_any_more_does_not_wait_for_a_slow_downstream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

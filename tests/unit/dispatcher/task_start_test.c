/* What becomes of a task that waits for a slot of a slow downstream. What follows from a decision
 * is a fake: it notes the decision. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
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
    struct sender s = { .d = &d, .lanes = lanes_new(1) };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_for_a_slow_downstream_is_put_off),
        cmocka_unit_test(what_nobody_wants_any_more_does_not_wait_for_a_slow_downstream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

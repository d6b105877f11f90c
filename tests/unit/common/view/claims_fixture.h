/* What the tests of claims share. They go to a real redis-server: the rules live in Lua. */
#ifndef CRCR_TESTS_CLAIMS_FIXTURE_H
#define CRCR_TESTS_CLAIMS_FIXTURE_H

#include "common/io/redis.h"
#include "common/view/claims.h"
#include "tests/unit/support/redis_fixture.h"

#define NOW 1795231200000LL

static inline struct task a_task(void)
{
    return (struct task){ .event = { .kind = EVENT_PULL_REQUEST,
                                     .delivery = STR_LIT("d-1"),
                                     .head_sha = STR_LIT("abcdef0"),
                                     .received_ms = NOW,
                                     .pr = 17 },
                          .repo = STR_LIT("Org/A"),
                          .level = 3,
                          .kind = TASK_DISPATCH,
                          .attempt = 1,
                          .seq = { 1000, 2, 5 },
                          .event_key = STR_LIT("pytorch/pytorch#17") };
}

static inline struct outcome an_outcome(const struct task *task, enum outcome_kind kind)
{
    struct outcome outcome;
    outcome_init(&outcome, task);
    outcome.outcome = kind;
    outcome.http_status = 204;
    outcome.at_ms = NOW + 7;
    return outcome;
}

static inline struct claim_answer claim(void **state, const struct task *task, const char *owner,
                                        int64_t now_ms)
{
    struct redis_fixture *f = *state;
    struct claim_answer answer = { 0 };
    struct why why;
    if (claim_queue(f->redis, task, owner, now_ms, false, NULL, &why) ||
        claim_collect(f->redis, &answer, &why))
        fail_msg("%s", why.text);
    return answer;
}

/* As if CLAIM_SENDING_MS had passed on Redis's clock. */
static inline void let_it_run_out(struct redis_fixture *f)
{
    const struct redis_value *v;
    assert_int_equal(redis_call(f->redis, &v,
                                REDIS_ARGS(STR_LIT("HSET"), STR_LIT("claim:d-1|org/a|dispatch|"),
                                           STR_LIT("until_ms"), STR_LIT("1")),
                                NULL),
                     OK);
}

static inline enum err finish(struct redis_fixture *f, const struct task *task, const char *owner,
                              const struct outcome *outcome)
{
    assert_int_equal(claim_finish_queue(f->redis, task, owner, outcome, NULL), OK);
    return claim_end_collect(f->redis, NULL);
}

#endif

#include "reconcile_call.h"

#include "../common/base/clock.h"
#include "../common/view/due.h"

#define LOOK_LATER_MS 1000

static void wait_until(struct reconcile *r, int64_t mono_ms)
{
    if (mono_ms > r->limited_until_ms)
        r->limited_until_ms = mono_ms;
}

/* It did not happen, and may later. */
static struct call_verdict judge_retry(struct reconcile *r, const struct github_answer *answer)
{
    int64_t until = answer->wait_until_ms, wait_ms = until - clock_mono_ms();
    if (answer->limited && answer->sent_ms == 0)
        return (struct call_verdict){
            PASS_EQUAL, clock_wall_ms() + (wait_ms > LOOK_LATER_MS ? wait_ms : LOOK_LATER_MS)
        };
    wait_until(r, until);
    return (struct call_verdict){ until > 0 ? PASS_WAIT : PASS_FAILED, 0 };
}

struct call_verdict call_judge(struct reconcile *r, const char *call,
                               const struct github_answer *answer)
{
    struct str outcome = str_of(answer->limited ? "limited" : err_name(answer->err));
    metrics_add(role_metrics(r->role), METRIC_UPSTREAM_CALLS, METRIC_LABELS(str_of(call), outcome),
                1);
    role_progress(r->role);
    switch (answer->err) {
    case OK:
        return (struct call_verdict){ PASS_EQUAL, 0 };
    case ERR_REFUSE:
        if (answer->no_token)
            return judge_retry(r, answer);
        return (struct call_verdict){ PASS_REFUSED, 0 };
    case ERR_RETRY:
        return judge_retry(r, answer);
    default:
        return (struct call_verdict){ PASS_FAILED, 0 };
    }
}

struct call_verdict call_not_sent(struct reconcile *r, const char *call, enum err err,
                                  const struct why *why)
{
    struct github_answer unsent =
        github_unsent(r->github, str_of(r->reporter->upstream_repo), err, why);
    return call_judge(r, call, &unsent);
}

enum err call_put_off(const struct target *target, int64_t look_ms, struct why *why)
{
    bool sooner = target->look_ms > 0 && target->look_ms < look_ms;
    return due_set(target->reconcile->redis, str_of(target->key),
                   sooner ? target->look_ms : look_ms, why);
}

#include "reconcile_call.h"

static void wait_until(struct reconcile *r, int64_t wall_ms)
{
    if (wall_ms > r->limited_until_ms)
        r->limited_until_ms = wall_ms;
}

enum pass_end call_judge(struct reconcile *r, const char *call, const struct github_answer *answer)
{
    struct str outcome = str_of(answer->limited ? "limited" : err_name(answer->err));
    metrics_add(role_metrics(r->role), METRIC_UPSTREAM_CALLS, METRIC_LABELS(str_of(call), outcome),
                1);
    role_progress(r->role);
    switch (answer->err) {
    case OK:
        return PASS_EQUAL;
    case ERR_REFUSE:
        return PASS_REFUSED;
    case ERR_RETRY:
        wait_until(r, answer->wait_until_ms);
        return answer->wait_until_ms > 0 ? PASS_WAIT : PASS_FAILED;
    default:
        return PASS_FAILED;
    }
}

enum pass_end call_not_sent(struct reconcile *r, enum err err)
{
    struct github_answer blocked;
    if (err == ERR_RETRY &&
        github_blocked(r->github, str_of(r->reporter->upstream_repo), &blocked) &&
        blocked.limited) {
        wait_until(r, blocked.wait_until_ms);
        return PASS_WAIT;
    }
    return err == ERR_REFUSE ? PASS_REFUSED : PASS_FAILED;
}

#include "reconcile_commit.h"

#include "../common/base/log.h"
#include "../common/github/commits.h"
#include "../common/view/commits.h"
#include "reconcile_call.h"

bool target_is_commit(const struct target *target)
{
    return str_eq_nocase(str_of(target->repo), str_of(target->reconcile->reporter->upstream_repo));
}

/* What Redis refuses does not heal by waiting. */
static void redis_failed(struct target *t, enum err err, const struct why *why)
{
    pass_ended(t, err == ERR_REFUSE ? PASS_FAILED : PASS_WAIT, why->text);
}

/* It did not work: now, or not at all. */
static void not_asked(struct target *t, struct call_verdict verdict, const char *reason)
{
    struct why why;
    enum err err = verdict.look_ms > 0 ? call_put_off(t, verdict.look_ms, &why) : OK;
    if (err != OK)
        redis_failed(t, err, &why);
    else
        pass_ended(t, verdict.end, reason);
}

static void commit_asked(void *opaque, const struct github_answer *answer, bool exists)
{
    struct target *t = opaque;
    struct reconcile *r = t->reconcile;
    struct str sha = str_of(t->head_sha);
    struct why why;
    struct call_verdict verdict = call_judge(r, "commit_get", answer);
    if (verdict.end != PASS_EQUAL || verdict.look_ms > 0) {
        not_asked(t, verdict, answer->reason ? answer->reason : "GitHub refused");
        return;
    }
    log_info("commit_asked", LOG_STR("head_sha", sha),
             LOG_STR("exists", str_of(exists ? "yes" : "no")));
    enum err err = commit_seen_put(r->redis, sha, exists ? COMMIT_EXISTS : COMMIT_ABSENT,
                                   &r->reporter->times, &why);
    if (err != OK)
        redis_failed(t, err, &why);
    else
        pass_ended(t, PASS_EQUAL, "");
}

void commit_pass_start(struct target *t)
{
    struct reconcile *r = t->reconcile;
    enum commit_seen seen = COMMIT_UNKNOWN;
    struct why why;
    t->look_ms = 0;
    enum err err = commit_seen_get(r->redis, str_of(t->head_sha), &seen, &why);
    if (err != OK) {
        redis_failed(t, err, &why);
        return;
    }
    if (seen != COMMIT_UNKNOWN) {
        pass_ended(t, PASS_EQUAL, "");
        return;
    }
    err = commit_ask(r->github, str_of(r->reporter->upstream_repo), str_of(t->head_sha),
                     commit_asked, t, &why);
    if (err != OK)
        not_asked(t, call_not_sent(r, "commit_get", err, &why), why.text);
}

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

static void commit_asked(void *opaque, const struct github_answer *answer, bool exists)
{
    struct target *t = opaque;
    struct reconcile *r = t->reconcile;
    struct str sha = str_of(t->head_sha);
    struct why why;
    enum pass_end end = call_judge(r, "commit_get", answer);
    if (end != PASS_EQUAL) {
        pass_ended(t, end, answer->reason ? answer->reason : "GitHub refused");
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
        pass_ended(t, call_not_sent(r, err), why.text);
}

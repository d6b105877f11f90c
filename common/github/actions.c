#include "actions.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../model/limits.h"

struct rerun {
    struct github *g;
    char repo[REPO_MAX + 1];
    uint64_t run_id;
    bool failed_only; /* of the call that is under way */
    github_answered_fn *done;
    void *opaque;
};

static github_answered_fn answered;

static enum err rerun_start(struct rerun *r, struct why *why)
{
    char path[REPO_MAX + 80];
    snprintf(path, sizeof(path), "/repos/%s/actions/runs/%llu/%s", r->repo,
             (unsigned long long)r->run_id, r->failed_only ? "rerun-failed-jobs" : "rerun");
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION, .method = "POST", .repo = str_of(r->repo), .path = path
    };
    return github_start(r->g, &request, answered, r, why);
}

static bool says(const struct github_answer *answer, const char *text)
{
    return answer->status == 403 && !answer->limited &&
           str_find_str(answer->body, str_of(text)) >= 0;
}

/* GitHub's words for a run that has no failed job to repeat. */
static bool nothing_failed(const struct github_answer *answer)
{
    return says(answer, "cannot be retried") || says(answer, "failed jobs");
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct rerun *r = opaque;
    struct github_answer seen = *answer;
    struct why why;
    if (says(answer, "already running")) {
        seen.err = OK;
        seen.reason = NULL;
    } else if (r->failed_only && nothing_failed(answer)) {
        r->failed_only = false;
        enum err err = rerun_start(r, &why);
        if (!err)
            return;
        seen = (struct github_answer){ .err = err, .budget_left = -1, .reason = why.text };
    }
    r->done(r->opaque, &seen);
    free(r);
}

enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       github_answered_fn *done, void *opaque, struct why *why)
{
    struct rerun *r = mem_alloc(1, sizeof(*r));
    *r = (struct rerun){ .g = g, .failed_only = failed_only, .done = done, .opaque = opaque };
    enum err err = OK;
    if (!str_to_u64(run_id, &r->run_id) || r->run_id == 0)
        err = why_set(why, ERR_REFUSE, "run id \"%.*s\" is not a GitHub Actions run's",
                      STR_ARG(run_id));
    else if (!str_copy(r->repo, sizeof(r->repo), repo))
        err = why_set(why, ERR_REFUSE, "the repository's name is too long");
    else
        err = rerun_start(r, why);
    if (err)
        free(r);
    return err;
}

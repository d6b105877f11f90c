#include "actions.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../model/limits.h"

struct rerun {
    github_answered_fn *done;
    void *opaque;
};

static void answered(void *opaque, const struct github_answer *answer)
{
    struct rerun *r = opaque;
    struct github_answer seen = *answer;
    if (answer->status == 403 && !answer->limited &&
        str_find_str(answer->body, STR_LIT("already running")) >= 0) {
        seen.err = OK;
        seen.reason = NULL;
    }
    r->done(r->opaque, &seen);
    free(r);
}

enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       github_answered_fn *done, void *opaque, struct why *why)
{
    uint64_t id;
    char path[REPO_MAX + 80];
    if (!str_to_u64(run_id, &id) || id == 0)
        return why_set(why, ERR_REFUSE, "run id \"%.*s\" is not a GitHub Actions run's",
                       STR_ARG(run_id));
    snprintf(path, sizeof(path), "/repos/%.*s/actions/runs/%llu/%s", STR_ARG(repo),
             (unsigned long long)id, failed_only ? "rerun-failed-jobs" : "rerun");
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION, .method = "POST", .repo = repo, .path = path
    };
    struct rerun *r = mem_alloc(1, sizeof(*r));
    r->done = done;
    r->opaque = opaque;
    enum err err = github_start(g, &request, answered, r, why);
    if (err)
        free(r);
    return err;
}

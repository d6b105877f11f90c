#include "commits.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../model/ids.h"

struct asking {
    commit_asked_fn *done;
    void *opaque;
};

static void answered(void *opaque, const struct github_answer *answer)
{
    struct asking *a = opaque;
    struct github_answer seen = *answer;
    bool absent = (seen.status == 404 || seen.status == 422) && seen.sent_ms > 0;
    if (absent) { /* without sent_ms it was the installation that was not found */
        seen.err = OK;
        seen.reason = NULL;
    }
    a->done(a->opaque, &seen, !seen.err && !absent);
    free(a);
}

enum err commit_ask(struct github *g, struct str repo, struct str sha, commit_asked_fn *done,
                    void *opaque, struct why *why)
{
    char path[REPO_MAX + SHA_MAX + 32];
    if (!sha_valid(sha))
        return why_set(why, ERR_REFUSE, "\"%.*s\" is not a commit", STR_ARG(str_cut(sha, SHA_MAX)));
    snprintf(path, sizeof(path), "/repos/%.*s/commits/%.*s", STR_ARG(repo), STR_ARG(sha));
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_CONTENTS_READ,
        .method = "GET",
        .repo = repo,
        .path = path,
        .class = BUDGET_REST,
        .accept = "application/vnd.github.sha", /* not 300 files with their patches */
    };
    struct asking *a = mem_alloc(1, sizeof(*a));
    a->done = done;
    a->opaque = opaque;
    enum err err = github_start(g, &request, answered, a, why);
    if (err)
        free(a);
    return err;
}

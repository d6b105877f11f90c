#include "actions.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../model/json_member.h"
#include "../model/limits.h"

struct rerun {
    struct github *g;
    char repo[REPO_MAX + 1];
    uint64_t run_id;
    bool failed_only; /* of the call that is under way */
    int64_t send_by_ms;
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
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_ACTIONS_WRITE,
        .method = "POST",
        .repo = str_of(r->repo),
        .path = path,
        .send_by_ms = r->send_by_ms,
    };
    return github_start(r->g, &request, answered, r, why);
}

static bool says(const struct github_answer *answer, const char *text)
{
    return answer->status == 403 && !answer->because &&
           str_find_str(answer->body, str_of(text)) >= 0;
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct rerun *r = opaque;
    struct github_answer seen = *answer;
    struct why why;
    if (says(answer, "already running")) {
        seen.err = OK;
        seen.reason = NULL;
    } else if (r->failed_only &&
               (says(answer, "cannot be retried") || says(answer, "failed jobs"))) {
        /* GitHub's words for a run that has no failed job to repeat. */
        r->failed_only = false;
        enum err err = rerun_start(r, &why);
        if (!err)
            return;
        seen = github_unsent(r->g, err, &why);
    }
    r->done(r->opaque, &seen);
    free(r);
}

enum err actions_rerun(struct github *g, struct str repo, struct str run_id, bool failed_only,
                       int64_t send_by_ms, github_answered_fn *done, void *opaque, struct why *why)
{
    struct rerun *r = mem_alloc(1, sizeof(*r));
    *r = (struct rerun){
        .g = g, .failed_only = failed_only, .send_by_ms = send_by_ms, .done = done, .opaque = opaque
    };
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

/* ---- a run as it is now ---- */

struct asking {
    actions_run_fn *done;
    void *opaque;
};

static void run_came(void *opaque, const struct github_answer *answer)
{
    struct asking *a = opaque;
    struct github_answer seen = *answer;
    json_t *document = seen.err ? NULL : json_document(seen.body, NULL);
    const struct actions_run run = {
        .status = json_member(document, "status"),
        .conclusion = json_member(document, "conclusion"),
        .attempt = json_integer_value(json_object_get(document, "run_attempt")),
    };
    if (!seen.err && !run.status.len) {
        seen.err = ERR_UNKNOWN;
        seen.reason = "GitHub's answer is not the workflow run that its documentation promises";
    }
    a->done(a->opaque, &seen, seen.err ? NULL : &run);
    json_decref(document);
    free(a);
}

enum err actions_run_get(struct github *g, struct str repo, struct str run_id, actions_run_fn *done,
                         void *opaque, struct why *why)
{
    uint64_t id;
    char path[REPO_MAX + 80];
    if (!str_to_u64(run_id, &id) || id == 0)
        return why_set(why, ERR_REFUSE, "run id \"%.*s\" is not a GitHub Actions run's",
                       STR_ARG(run_id));
    snprintf(path, sizeof(path), "/repos/%.*s/actions/runs/%llu", STR_ARG(repo),
             (unsigned long long)id);
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_ACTIONS_WRITE,
        .method = "GET",
        .repo = repo,
        .path = path,
    };
    struct asking *a = mem_alloc(1, sizeof(*a));
    a->done = done;
    a->opaque = opaque;
    enum err err = github_start(g, &request, run_came, a, why);
    if (err)
        free(a);
    return err;
}

/* Pull requests of the upstream repository: https://docs.github.com/en/rest/pulls/pulls */
#ifndef CRCR_GITHUB_PULLS_H
#define CRCR_GITHUB_PULLS_H

#include "../base/buf.h"
#include "../model/limits.h"
#include "github.h"

/* The pull request as it is now: GET /repos/{repo}/pulls/{number}. Asynchronous as github_start.
 * The App needs the permission "Pull requests: read". */
enum err pull_get(struct github *g, struct str repo, int64_t number, github_answered_fn *done,
                  void *opaque, struct why *why) MUST_CHECK;

/* PURE: what the answer says. ERR_REFUSE: it is no pull request of GitHub's. */
struct pull {
    int64_t number;
    bool open;
    char head_sha[SHA_MAX + 1];
    int64_t updated_ms;
};
enum err pull_read(struct str body, struct pull *ret, struct why *why) MUST_CHECK;

/* PURE: appends the pull_request webhook that GitHub would send had the pull request been reopened
 * now. asked is the webhook that somebody's wish came with; its repository, sender, organization
 * and installation are taken over. "reopened" is the one action among those that downstream
 * workflows know (opened, synchronize, reopened, closed) that says: nothing has changed, test it
 * again. ERR_REFUSE: one of both is not a JSON object. */
enum err pull_event(struct str body, struct str asked, struct buf *to, struct why *why) MUST_CHECK;

#endif

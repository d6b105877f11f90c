/* Commits of the upstream repository: https://docs.github.com/en/rest/commits/commits#get-a-commit
 */
#ifndef CRCR_GITHUB_COMMITS_H
#define CRCR_GITHUB_COMMITS_H

#include "github.h"

/* exists means something only when answer->err is OK. */
typedef void commit_asked_fn(void *opaque, const struct github_answer *answer, bool exists);
/* GET /repos/{repo}/commits/{sha}. 404 and 422 are the answer "no", not a failure. Asynchronous as
 * github_start. */
enum err commit_ask(struct github *g, struct str repo, struct str sha, commit_asked_fn *done,
                    void *opaque, struct why *why) MUST_CHECK;

#endif

/* The commits that a push brought to a branch, from the webhook's body (GitHub's push event). PURE.
 */
#ifndef CRCR_MODEL_PUSH_H
#define CRCR_MODEL_PUSH_H

#include "../base/err.h"
#include "../base/str.h"
#include "limits.h"

#define PUSH_COMMITS_MAX 4096 /* GitHub: 2,048 */
#define COMMIT_TITLE_MAX 120  /* bytes that are kept of the first line of a message */

struct push_commit {
    char sha[SHA_MAX + 1];
    char parent[SHA_MAX + 1]; /* the commit before it on the branch; of the first one: before */
    char title[COMMIT_TITLE_MAX + 1];
    int64_t pr; /* that it landed, 0: its message names none */
};
struct push {
    int64_t pushed_s;            /* when, by GitHub's clock (Unix seconds); 0: it does not say */
    struct push_commit *commits; /* oldest first */
    size_t n;
};
/* The commits of the default branch, as pushes brought them. */
struct main_commit {
    struct push_commit commit;
    int64_t pushed_ms;
};
struct main_list {
    struct main_commit *at; /* newest first */
    size_t n;
};

/* Of a push to another branch than the default one, or to a tag: no commits. ERR_REFUSE: the body
 * is not a JSON object. *ret is the caller's after OK. */
enum err push_read(struct str body, struct push *ret, struct why *why) MUST_CHECK;
void push_clear(struct push *push);

/* The pull request that a commit landed, by its message: "Title (#123)" in the first line, or a
 * line "Pull Request resolved: https://github.com/<owner>/<repo>/pull/123". 0: neither. */
int64_t commit_pull_request(struct str message);

#endif

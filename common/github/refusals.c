#include "refusals.h"

#include <stdlib.h>
#include <uthash.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../model/limits.h"

#define REFUSED_MS   60000
#define FAILED_MS    5000
#define REFUSALS_MAX 1000

struct refusal {
    UT_hash_handle hh;
    char repo[REPO_MAX + 1]; /* lower case */
    int64_t until_ms;        /* monotonic */
    enum err err;
    int status;
    char reason[512];
};

static void forget(struct refusals *r, struct refusal *one)
{
    HASH_DEL(r->by_repo, one);
    free(one);
}

void refusals_clear(struct refusals *r)
{
    while (r->by_repo)
        forget(r, r->by_repo);
}

/* NULL when there is none, or none that is believed still. */
static struct refusal *look_up(struct refusals *r, struct str repo)
{
    char name[REPO_MAX + 1];
    struct refusal *one;
    str_lower(name, sizeof(name), repo);
    HASH_FIND_STR(r->by_repo, name, one);
    if (one && one->until_ms <= clock_mono_ms()) {
        forget(r, one);
        return NULL;
    }
    return one;
}

void refusals_remember(struct refusals *r, struct str repo, const struct github_answer *failure)
{
    struct refusal *one = look_up(r, repo);
    if (one)
        forget(r, one);
    if (HASH_COUNT(r->by_repo) >= REFUSALS_MAX)
        forget(r, r->by_repo);
    one = mem_alloc(1, sizeof(*one));
    str_lower(one->repo, sizeof(one->repo), repo);
    one->err = failure->err;
    one->status = failure->status;
    one->until_ms = clock_mono_ms() + (failure->err == ERR_REFUSE ? REFUSED_MS : FAILED_MS);
    str_copy(one->reason, sizeof(one->reason), str_of(failure->reason));
    HASH_ADD_STR(r->by_repo, repo, one);
}

bool refusals_find(struct refusals *r, struct str repo, struct github_answer *ret)
{
    const struct refusal *one = look_up(r, repo);
    if (!one)
        return false;
    *ret = (struct github_answer){
        .err = one->err, .status = one->status, .budget_left = -1, .reason = one->reason
    };
    return true;
}

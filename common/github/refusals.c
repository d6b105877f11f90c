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
    char name[REPO_MAX + 1]; /* lower case */
    int64_t until_ms;        /* monotonic */
    enum err err;
    int status;
    char reason[512];
};

static void forget(struct refusals *r, struct refusal *one)
{
    HASH_DEL(r->by_name, one);
    free(one);
}

void refusals_clear(struct refusals *r)
{
    while (r->by_name)
        forget(r, r->by_name);
}

/* NULL when there is none, or none that is believed still. */
static struct refusal *look_up(struct refusals *r, struct str name)
{
    char lower[REPO_MAX + 1];
    struct refusal *one;
    str_lower(lower, sizeof(lower), name);
    HASH_FIND_STR(r->by_name, lower, one);
    if (one && one->until_ms <= clock_mono_ms()) {
        forget(r, one);
        return NULL;
    }
    return one;
}

int64_t refusals_remember(struct refusals *r, struct str name, const struct github_answer *failure)
{
    struct refusal *one = look_up(r, name);
    if (one)
        forget(r, one);
    if (HASH_COUNT(r->by_name) >= REFUSALS_MAX)
        forget(r, r->by_name);
    one = mem_alloc(1, sizeof(*one));
    str_lower(one->name, sizeof(one->name), name);
    one->err = failure->err;
    one->status = failure->status;
    one->until_ms = clock_mono_ms() + (failure->err == ERR_REFUSE ? REFUSED_MS : FAILED_MS);
    str_copy(one->reason, sizeof(one->reason), str_of(failure->reason));
    HASH_ADD_STR(r->by_name, name, one);
    return one->until_ms;
}

bool refusals_find(struct refusals *r, struct str name, struct github_answer *ret)
{
    const struct refusal *one = look_up(r, name);
    if (!one)
        return false;
    *ret = (struct github_answer){
        .err = one->err, .status = one->status, .budget_left = -1, .reason = one->reason
    };
    if (one->err == ERR_REFUSE) { /* GitHub was not asked for this call */
        ret->err = ERR_RETRY;
        ret->limited = true;
        ret->wait_until_ms = one->until_ms;
    }
    return true;
}

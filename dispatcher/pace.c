#include "pace.h"

#include <stdlib.h>
#include <uthash.h>

#include "../common/base/mem.h"
#include "../common/model/limits.h"

struct waiting {
    UT_hash_handle hh;
    char repo[REPO_MAX + 1];
    int64_t last_ms; /* the last moment that was told */
};

struct pace {
    struct waiting *waiting;
};

struct pace *pace_new(void)
{
    return mem_alloc(1, sizeof(struct pace));
}

/* Those to whom nobody was told a moment after that one. */
static void forget(struct pace *p, int64_t until_ms)
{
    struct waiting *one, *next;
    HASH_ITER(hh, p->waiting, one, next)
    {
        if (one->last_ms > until_ms)
            continue;
        HASH_DEL(p->waiting, one);
        free(one);
    }
}

void pace_free(struct pace *p)
{
    if (!p)
        return;
    forget(p, INT64_MAX);
    free(p);
}

static struct waiting *waiting_for(struct pace *p, struct str repo, int64_t now_ms)
{
    struct waiting *one;
    HASH_FIND(hh, p->waiting, repo.ptr, repo.len, one);
    if (one)
        return one;
    forget(p, now_ms);
    one = mem_alloc(1, sizeof(*one));
    str_copy(one->repo, sizeof(one->repo), repo);
    HASH_ADD_KEYPTR(hh, p->waiting, one->repo, strlen(one->repo), one);
    return one;
}

int64_t pace_next(struct pace *p, struct str repo, int64_t from_ms, int64_t now_ms)
{
    struct waiting *one = waiting_for(p, repo, now_ms);
    int64_t at_ms = one->last_ms + PACE_MS;
    if (at_ms < from_ms)
        at_ms = from_ms;
    if (at_ms > now_ms + PACE_MOST_MS)
        at_ms = now_ms + PACE_MOST_MS;
    return one->last_ms = at_ms;
}

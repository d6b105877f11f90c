#include "breaker.h"

#include <stdlib.h>
#include <uthash.h>

#include "../common/base/mem.h"
#include "../common/model/limits.h"

struct breaker {
    UT_hash_handle hh;
    char repo[REPO_MAX + 1];
    int failures;     /* in a row */
    int64_t probe_ms; /* open: when the next call may go */
    int64_t opened_ms;
    int64_t asked_ms; /* when it was last asked for, or failed */
};

struct breakers {
    struct breaker *failing;
};

struct breakers *breakers_new(void)
{
    return mem_alloc(1, sizeof(struct breakers));
}

static void forget(struct breakers *b, struct breaker *one)
{
    HASH_DEL(b->failing, one);
    free(one);
}

void breakers_free(struct breakers *b)
{
    struct breaker *one, *next;
    if (!b)
        return;
    HASH_ITER(hh, b->failing, one, next)
    forget(b, one);
    free(b);
}

static struct breaker *find(const struct breakers *b, struct str repo)
{
    struct breaker *one;
    HASH_FIND(hh, b->failing, repo.ptr, repo.len, one);
    return one;
}

static bool is_open(const struct breaker *one)
{
    return one->failures >= BREAKER_FAILURES;
}

void breakers_forget(struct breakers *b, int64_t unasked_since_ms, breaker_forgotten_fn *forgotten,
                     void *opaque)
{
    struct breaker *one, *next;
    HASH_ITER(hh, b->failing, one, next)
    {
        if (one->asked_ms > unasked_since_ms)
            continue;
        if (is_open(one))
            forgotten(opaque, str_of(one->repo));
        forget(b, one);
    }
}

bool breaker_allows(struct breakers *b, struct str repo, int64_t now_ms)
{
    struct breaker *one = find(b, repo);
    if (one)
        one->asked_ms = now_ms;
    if (!one || !is_open(one))
        return true;
    if (now_ms < one->probe_ms)
        return false;
    one->probe_ms = now_ms + BREAKER_PROBE_MS;
    return true;
}

int64_t breaker_open_since(const struct breakers *b, struct str repo, int64_t now_ms)
{
    const struct breaker *one = find(b, repo);
    return one && is_open(one) ? one->opened_ms : now_ms;
}

enum breaker_change breaker_answered(struct breakers *b, struct str repo,
                                     const struct github_answer *answer, int64_t now_ms)
{
    struct breaker *one = find(b, repo);
    bool was_open = one && is_open(one);
    if (one && !answer->sent_ms)
        one->probe_ms = now_ms;
    if (!answer->sent_ms || answer->limited || answer->err == ERR_RETRY)
        return BREAKER_SAME;
    if (answer->err != ERR_UNKNOWN) {
        if (one)
            forget(b, one);
        return was_open ? BREAKER_CLOSED : BREAKER_SAME;
    }
    if (!one) {
        one = mem_alloc(1, sizeof(*one));
        str_copy(one->repo, sizeof(one->repo), repo);
        HASH_ADD_KEYPTR(hh, b->failing, one->repo, strlen(one->repo), one);
    }
    one->asked_ms = now_ms;
    if (was_open) /* the probe, or what was under way when it opened */
        return BREAKER_SAME;
    one->failures++;
    one->probe_ms = now_ms + BREAKER_PROBE_MS;
    one->opened_ms = now_ms;
    return is_open(one) ? BREAKER_OPENED : BREAKER_SAME;
}

#include "breaker.h"

#include <stdlib.h>

#include "../common/base/mem.h"
#include "../common/base/table.h"

struct breaker {
    int failures;     /* in a row */
    int64_t probe_ms; /* open: when the next call may go */
    int64_t opened_ms;
    int64_t asked_ms; /* when it was last asked for, or failed */
};

struct breakers {
    struct table failing; /* of struct breaker by repository */
};

struct breakers *breakers_new(void)
{
    struct breakers *b = mem_alloc(1, sizeof(*b));
    b->failing.size = sizeof(struct breaker);
    return b;
}

void breakers_free(struct breakers *b)
{
    if (!b)
        return;
    table_clear(&b->failing);
    free(b);
}

static bool is_open(const struct breaker *one)
{
    return one->failures >= BREAKER_FAILURES;
}

void breakers_forget(struct breakers *b, int64_t unasked_since_ms, breaker_forgotten_fn *forgotten,
                     void *opaque)
{
    struct breaker *one, *next;
    for (one = table_next(&b->failing, NULL); one; one = next) {
        next = table_next(&b->failing, one);
        if (one->asked_ms > unasked_since_ms)
            continue;
        if (is_open(one))
            forgotten(opaque, table_key(one));
        table_remove(&b->failing, one);
    }
}

bool breaker_allows(struct breakers *b, struct str repo, int64_t now_ms)
{
    struct breaker *one = table_get(&b->failing, repo);
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
    const struct breaker *one = table_get(&b->failing, repo);
    return one && is_open(one) ? one->opened_ms : now_ms;
}

enum breaker_change breaker_answered(struct breakers *b, struct str repo,
                                     const struct github_answer *answer, int64_t now_ms)
{
    struct breaker *one = table_get(&b->failing, repo);
    bool was_open = one && is_open(one);
    if (one && !answer->sent_ms)
        one->probe_ms = now_ms;
    if (!answer->sent_ms || answer->limited || answer->err == ERR_RETRY)
        return BREAKER_SAME;
    if (answer->err != ERR_UNKNOWN) {
        if (one)
            table_remove(&b->failing, one);
        return was_open ? BREAKER_CLOSED : BREAKER_SAME;
    }
    one = table_make(&b->failing, repo);
    one->asked_ms = now_ms;
    if (was_open) /* the probe, or what was under way when it opened */
        return BREAKER_SAME;
    one->failures++;
    one->probe_ms = now_ms + BREAKER_PROBE_MS;
    one->opened_ms = now_ms;
    return is_open(one) ? BREAKER_OPENED : BREAKER_SAME;
}

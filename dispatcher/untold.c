#include "untold.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../common/base/mem.h"
#include "../common/view/claims.h"

#define AT_ONCE 256

struct untold_lane {
    UT_hash_handle hh;
    struct task_seq seq;
    size_t len;
    char key[];
};

struct untold {
    struct untold_lane *lanes; /* in the order of coming */
};

struct untold *untold_new(void)
{
    return mem_alloc(1, sizeof(struct untold));
}

static void forget_first(struct untold *u)
{
    struct untold_lane *first = u->lanes;
    HASH_DEL(u->lanes, first);
    free(first);
}

void untold_free(struct untold *u)
{
    while (u && u->lanes)
        forget_first(u);
    free(u);
}

static struct untold_lane *find(const struct untold *u, struct str lane)
{
    struct untold_lane *found;
    HASH_FIND(hh, u->lanes, lane.ptr, lane.len, found);
    return found;
}

void untold_put(struct untold *u, struct str lane, const struct task_seq *seq)
{
    struct untold_lane *one = find(u, lane);
    if (one) {
        if (task_seq_cmp(seq, &one->seq) > 0)
            one->seq = *seq;
        return;
    }
    if (HASH_COUNT(u->lanes) == UNTOLD_MAX)
        forget_first(u);
    one = mem_alloc(1, sizeof(*one) + lane.len);
    one->seq = *seq;
    one->len = lane.len;
    memcpy(one->key, lane.ptr, lane.len);
    HASH_ADD_KEYPTR(hh, u->lanes, one->key, one->len, one);
}

bool untold_is_later(const struct untold *u, struct str lane, const struct task_seq *seq)
{
    const struct untold_lane *one = find(u, lane);
    return one && task_seq_cmp(&one->seq, seq) > 0;
}

/* One round trip. What Redis refuses it will never take. */
static enum err tell_some(struct untold *u, struct redis *redis, struct why *why)
{
    size_t queued = 0;
    enum err err = OK;
    for (struct untold_lane *one = u->lanes; !err && one && queued < AT_ONCE; one = one->hh.next) {
        err = lane_restore_queue(redis, (struct str){ one->key, one->len }, &one->seq, why);
        queued += !err;
    }
    for (; queued; queued--) {
        enum err ended = claim_end_collect(redis, why);
        if (ended && ended != ERR_REFUSE)
            err = ended;
        if (!err)
            forget_first(u);
    }
    return err;
}

enum err untold_tell(struct untold *u, struct redis *redis, struct why *why)
{
    enum err err = OK;
    while (!err && u->lanes)
        err = tell_some(u, redis, why);
    return err;
}

size_t untold_count(const struct untold *u)
{
    return HASH_COUNT(u->lanes);
}

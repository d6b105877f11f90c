#include "called.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "../common/base/mem.h"
#include "../common/view/claims.h"

#define AT_ONCE 256

struct called_one {
    struct called_one *prev, *next;
    enum called_as how;
    char delivery[DELIVERY_MAX + 1];
};

struct called_lane {
    UT_hash_handle hh;
    struct called_lane *prev, *next; /* in called.untold */
    struct task_seq seq;
    struct called_one *calls; /* called longest ago first */
    size_t n_calls;
    bool untold; /* Redis does not know seq */
    size_t len;
    char key[];
};

struct called {
    struct called_lane *lanes; /* called in longest ago first */
    struct called_lane *untold;
    size_t n_untold;
};

struct called *called_new(void)
{
    return mem_alloc(1, sizeof(struct called));
}

static void set_untold(struct called *c, struct called_lane *one, bool untold)
{
    if (one->untold == untold)
        return;
    one->untold = untold;
    if (untold) {
        DL_APPEND(c->untold, one);
        c->n_untold++;
    } else {
        DL_DELETE(c->untold, one);
        c->n_untold--;
    }
}

static void forget_call(struct called_lane *lane, struct called_one *one)
{
    DL_DELETE(lane->calls, one);
    lane->n_calls--;
    free(one);
}

static void forget(struct called *c, struct called_lane *one)
{
    set_untold(c, one, false);
    HASH_DEL(c->lanes, one);
    while (one->calls)
        forget_call(one, one->calls);
    free(one);
}

void called_free(struct called *c)
{
    while (c && c->lanes)
        forget(c, c->lanes);
    free(c);
}

static struct called_lane *find(const struct called *c, struct str lane)
{
    struct called_lane *found;
    HASH_FIND(hh, c->lanes, lane.ptr, lane.len, found);
    return found;
}

static struct called_lane *lane_new(struct called *c, struct str lane)
{
    if (HASH_COUNT(c->lanes) == CALLED_MAX)
        forget(c, c->lanes);
    struct called_lane *one = mem_alloc(1, sizeof(*one) + lane.len);
    one->len = lane.len;
    memcpy(one->key, lane.ptr, lane.len);
    return one;
}

static struct called_one *find_call(const struct called_lane *lane, struct str delivery)
{
    struct called_one *one = lane ? lane->calls : NULL;
    while (one && !str_is(delivery, one->delivery))
        one = one->next;
    return one;
}

/* The delivery is the lane's last one, once more or for the first time. */
static void note_call(struct called_lane *lane, struct str delivery)
{
    struct called_one *one = find_call(lane, delivery);
    if (one) {
        DL_DELETE(lane->calls, one);
    } else {
        if (lane->n_calls == CALLED_IN_LANE)
            forget_call(lane, lane->calls);
        one = mem_alloc(1, sizeof(*one));
        str_copy(one->delivery, sizeof(one->delivery), delivery);
        lane->n_calls++;
    }
    DL_APPEND(lane->calls, one);
}

void called_put(struct called *c, struct str lane, const struct task_seq *seq, struct str delivery,
                bool redis_knows)
{
    struct called_lane *one = find(c, lane);
    bool later = !one || task_seq_cmp(seq, &one->seq) > 0;
    if (one)
        HASH_DEL(c->lanes, one);
    else
        one = lane_new(c, lane);
    HASH_ADD_KEYPTR(hh, c->lanes, one->key, one->len, one);
    note_call(one, delivery);
    if (!later)
        return;
    one->seq = *seq;
    set_untold(c, one, !redis_knows);
}

void called_ended(struct called *c, struct str lane, struct str delivery, enum called_as how)
{
    struct called_one *one = find_call(find(c, lane), delivery);
    if (one && how > one->how)
        one->how = how;
}

bool called_is_later(const struct called *c, struct str lane, const struct task_seq *seq)
{
    const struct called_lane *one = find(c, lane);
    return one && task_seq_cmp(&one->seq, seq) > 0;
}

void called_tell_again(struct called *c, struct str lane)
{
    struct called_lane *one = find(c, lane);
    if (one)
        set_untold(c, one, true);
}

enum called_as called_how(const struct called *c, struct str lane, struct str delivery)
{
    const struct called_one *one = find_call(find(c, lane), delivery);
    return one ? one->how : CALLED_NOT;
}

/* One round trip. What Redis refuses it will never take. */
static enum err tell_some(struct called *c, struct redis *redis, struct why *why)
{
    size_t queued = 0;
    enum err err = OK;
    for (struct called_lane *one = c->untold; !err && one && queued < AT_ONCE; one = one->next) {
        err = lane_restore_queue(redis, (struct str){ one->key, one->len }, &one->seq, why);
        queued += !err;
    }
    for (; queued; queued--) {
        enum err ended = claim_end_collect(redis, why);
        if (ended && ended != ERR_REFUSE)
            err = ended;
        if (!err)
            set_untold(c, c->untold, false);
    }
    return err;
}

enum err called_tell(struct called *c, struct redis *redis, struct why *why)
{
    enum err err = OK;
    while (!err && c->untold)
        err = tell_some(c, redis, why);
    return err;
}

size_t called_count(const struct called *c)
{
    return HASH_COUNT(c->lanes);
}

size_t called_untold(const struct called *c)
{
    return c->n_untold;
}

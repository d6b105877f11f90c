#include "lane.h"

#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#include "../common/base/mem.h"

enum lane_state { LANE_READY, LANE_WAITING, LANE_BUSY };

struct task_lane {
    UT_hash_handle hh;             /* in its downstream's lanes, by event key */
    struct task_lane *prev, *next; /* in its downstream's ready, or in waiting */
    struct lane_downstream *downstream;
    enum lane_state state;
    int64_t due_ms;          /* WAITING */
    struct lane_item *items; /* by seq, without the one that is out */
    size_t key_len;
    char key[];
};

/* All lanes of one repository. */
struct lane_downstream {
    UT_hash_handle hh;
    struct lane_downstream *prev, *next; /* in open or full */
    struct task_lane *lanes;             /* all, by event key */
    struct task_lane *ready;             /* first come, first served */
    size_t n_out;
    struct lane_downstream **in; /* open, full or NULL */
    int64_t full_ms;             /* when its slots were all taken last */
    int64_t slow_ms;             /* since when it is slow; 0: it is not */
    size_t key_len;
    char key[];
};

struct lanes {
    size_t max_out;
    lanes_may_fn *may;
    void *opaque;
    struct lane_downstream *downstreams;
    struct lane_downstream *open; /* a lane is ready and a slot is left; by turns */
    struct lane_downstream *full; /* a lane is ready and no slot is left */
    struct task_lane *waiting;    /* by due_ms */
};

struct lanes *lanes_new(size_t max_out, lanes_may_fn *may, void *opaque)
{
    struct lanes *l = mem_alloc(1, sizeof(*l));
    *l = (struct lanes){ .max_out = max_out, .may = may, .opaque = opaque };
    return l;
}

void lanes_free(struct lanes *l)
{
    struct task_lane *lane, *next;
    struct lane_downstream *d, *d_next;
    if (!l)
        return;
    HASH_ITER(hh, l->downstreams, d, d_next)
    {
        HASH_ITER(hh, d->lanes, lane, next)
        {
            HASH_DEL(d->lanes, lane);
            free(lane);
        }
        HASH_DEL(l->downstreams, d);
        free(d);
    }
    free(l);
}

/* ---- downstreams ---- */

static void move(struct lane_downstream *d, struct lane_downstream **to)
{
    if (d->in == to)
        return;
    if (d->in)
        DL_DELETE(*d->in, d);
    if (to)
        DL_APPEND(*to, d);
    d->in = to;
}

/* Puts it into the list that fits its lanes and slots; frees it without lanes. */
static void file_again(struct lanes *l, struct lane_downstream *d)
{
    move(d, !d->ready ? NULL : d->n_out < l->max_out ? &l->open : &l->full);
    if (d->lanes)
        return;
    HASH_DEL(l->downstreams, d);
    free(d);
}

/* ---- lanes ---- */

static struct task_lane *lane_of(struct lanes *l, struct str downstream, struct str key)
{
    struct lane_downstream *d;
    struct task_lane *lane;
    HASH_FIND(hh, l->downstreams, downstream.ptr, downstream.len, d);
    if (!d) {
        d = mem_alloc(1, sizeof(*d) + downstream.len);
        d->key_len = downstream.len;
        memcpy(d->key, downstream.ptr, downstream.len);
        HASH_ADD_KEYPTR(hh, l->downstreams, d->key, d->key_len, d);
    }
    HASH_FIND(hh, d->lanes, key.ptr, key.len, lane);
    if (lane)
        return lane;
    lane = mem_alloc(1, sizeof(*lane) + key.len);
    lane->key_len = key.len;
    memcpy(lane->key, key.ptr, key.len);
    lane->state = LANE_READY;
    lane->downstream = d;
    HASH_ADD_KEYPTR(hh, d->lanes, lane->key, lane->key_len, lane);
    DL_APPEND(d->ready, lane);
    file_again(l, d);
    return lane;
}

/* Both lists are searched from their end: a later item mostly belongs there. */
static void insert_item(struct task_lane *lane, struct lane_item *item)
{
    struct lane_item *after = lane->items ? lane->items->prev : NULL;
    while (after && task_seq_cmp(&after->seq, &item->seq) > 0)
        after = after == lane->items ? NULL : after->prev;
    if (after)
        DL_APPEND_ELEM(lane->items, after, item);
    else
        DL_PREPEND(lane->items, item);
    item->lane = lane;
}

void lanes_put(struct lanes *l, struct str downstream, struct str event_key, struct lane_item *item)
{
    insert_item(lane_of(l, downstream, event_key), item);
}

static struct lane_item *take_of(struct lanes *l, struct lane_downstream *d)
{
    struct task_lane *lane = d->ready;
    struct lane_item *item = lane->items;
    DL_DELETE(d->ready, lane);
    lane->state = LANE_BUSY;
    DL_DELETE(lane->items, item);
    d->n_out++;
    move(d, NULL); /* to the end of the round */
    file_again(l, d);
    return item;
}

struct lane_item *lanes_take(struct lanes *l, int64_t now_ms)
{
    while (l->waiting && l->waiting->due_ms <= now_ms) {
        struct task_lane *due = l->waiting;
        DL_DELETE(l->waiting, due);
        due->state = LANE_READY;
        DL_APPEND(due->downstream->ready, due);
        file_again(l, due->downstream);
    }
    struct lane_downstream *d;
    DL_FOREACH(l->open, d)
    if (l->may(l->opaque, (struct str){ d->key, d->key_len }))
        break;
    if (!d)
        return NULL;
    struct lane_item *item = take_of(l, d);
    if (d->n_out == l->max_out) {
        if (now_ms - d->full_ms < LANES_SLOW_MS)
            d->slow_ms = 0;
        d->full_ms = now_ms;
    }
    return item;
}

/* At most as many downstreams are full as the owner has items out, divided by max_out. */
struct lane_item *lanes_take_stuck(struct lanes *l, int64_t now_ms, int64_t *since_ms)
{
    struct lane_downstream *d;
    DL_FOREACH(l->full, d)
    if (d->slow_ms || now_ms - d->full_ms >= LANES_SLOW_MS) {
        if (!d->slow_ms)
            d->slow_ms = now_ms;
        *since_ms = d->slow_ms;
        return take_of(l, d);
    }
    return NULL;
}

const struct lane_item *lanes_behind(const struct lane_item *item)
{
    return item->lane->items;
}

void lanes_hold(struct lanes *l, struct lane_item *item, int64_t until_ms)
{
    struct task_lane *lane = item->lane;
    insert_item(lane, item);
    lane->state = LANE_WAITING;
    lane->due_ms = until_ms;
    struct task_lane *after = l->waiting ? l->waiting->prev : NULL;
    while (after && after->due_ms > lane->due_ms)
        after = after == l->waiting ? NULL : after->prev;
    if (after)
        DL_APPEND_ELEM(l->waiting, after, lane);
    else
        DL_PREPEND(l->waiting, lane);
    lane->downstream->n_out--;
    file_again(l, lane->downstream);
}

/* Frees an idle lane without items. */
static void drop_if_empty(struct lanes *l, struct task_lane *lane)
{
    struct lane_downstream *d = lane->downstream;
    if (lane->items || lane->state == LANE_BUSY)
        return;
    if (lane->state == LANE_READY)
        DL_DELETE(d->ready, lane);
    else
        DL_DELETE(l->waiting, lane);
    HASH_DEL(d->lanes, lane);
    free(lane);
}

void lanes_end(struct lanes *l, struct lane_item *item)
{
    struct task_lane *lane = item->lane;
    struct lane_downstream *d = lane->downstream;
    item->lane = NULL;
    lane->state = LANE_READY;
    DL_APPEND(d->ready, lane);
    d->n_out--;
    drop_if_empty(l, lane);
    file_again(l, d);
}

void lanes_remove(struct lanes *l, struct lane_item *item)
{
    struct task_lane *lane = item->lane;
    struct lane_downstream *d = lane->downstream;
    item->lane = NULL;
    DL_DELETE(lane->items, item);
    drop_if_empty(l, lane);
    file_again(l, d);
}

int64_t lanes_due(const struct lanes *l)
{
    if (l->open)
        return 0;
    return l->waiting ? l->waiting->due_ms : INT64_MAX;
}

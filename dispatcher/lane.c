#include "lane.h"

#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#include "../common/base/mem.h"

enum lane_state { LANE_READY, LANE_WAITING, LANE_BUSY };

struct lane {
    UT_hash_handle hh;
    struct lane *prev, *next; /* in ready or waiting */
    enum lane_state state;
    int64_t due_ms;          /* WAITING */
    struct lane_item *items; /* by seq, without the one that is out */
    size_t key_len;
    char key[];
};

struct lanes {
    struct lane *by_key;
    struct lane *ready;   /* first come, first served */
    struct lane *waiting; /* by due_ms */
};

struct lanes *lanes_new(void)
{
    return mem_alloc(1, sizeof(struct lanes));
}

void lanes_free(struct lanes *l)
{
    struct lane *lane, *next;
    if (!l)
        return;
    HASH_ITER(hh, l->by_key, lane, next)
    {
        HASH_DEL(l->by_key, lane);
        free(lane);
    }
    free(l);
}

static struct lane *lane_of(struct lanes *l, struct str key)
{
    struct lane *lane;
    HASH_FIND(hh, l->by_key, key.ptr, key.len, lane);
    if (lane)
        return lane;
    lane = mem_alloc(1, sizeof(*lane) + key.len);
    lane->key_len = key.len;
    memcpy(lane->key, key.ptr, key.len);
    lane->state = LANE_READY;
    HASH_ADD_KEYPTR(hh, l->by_key, lane->key, lane->key_len, lane);
    DL_APPEND(l->ready, lane);
    return lane;
}

/* Both lists are searched from their end: what comes later mostly belongs there. */
static void insert_item(struct lane *lane, struct lane_item *item)
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

static void insert_waiting(struct lanes *l, struct lane *lane)
{
    struct lane *after = l->waiting ? l->waiting->prev : NULL;
    while (after && after->due_ms > lane->due_ms)
        after = after == l->waiting ? NULL : after->prev;
    if (after)
        DL_APPEND_ELEM(l->waiting, after, lane);
    else
        DL_PREPEND(l->waiting, lane);
}

void lanes_put(struct lanes *l, struct str key, struct lane_item *item)
{
    insert_item(lane_of(l, key), item);
}

struct lane_item *lanes_take(struct lanes *l, int64_t now_ms)
{
    while (l->waiting && l->waiting->due_ms <= now_ms) {
        struct lane *due = l->waiting;
        DL_DELETE(l->waiting, due);
        due->state = LANE_READY;
        DL_APPEND(l->ready, due);
    }
    struct lane *lane = l->ready;
    if (!lane)
        return NULL;
    struct lane_item *item = lane->items;
    DL_DELETE(l->ready, lane);
    lane->state = LANE_BUSY;
    DL_DELETE(lane->items, item);
    return item;
}

void lanes_hold(struct lanes *l, struct lane_item *item, int64_t until_ms)
{
    struct lane *lane = item->lane;
    insert_item(lane, item);
    lane->state = LANE_WAITING;
    lane->due_ms = until_ms;
    insert_waiting(l, lane);
}

/* An idle lane without items is gone. */
static void drop_if_empty(struct lanes *l, struct lane *lane)
{
    if (lane->items || lane->state == LANE_BUSY)
        return;
    if (lane->state == LANE_READY)
        DL_DELETE(l->ready, lane);
    else
        DL_DELETE(l->waiting, lane);
    HASH_DEL(l->by_key, lane);
    free(lane);
}

void lanes_end(struct lanes *l, struct lane_item *item)
{
    struct lane *lane = item->lane;
    item->lane = NULL;
    lane->state = LANE_READY;
    DL_APPEND(l->ready, lane);
    drop_if_empty(l, lane);
}

void lanes_remove(struct lanes *l, struct lane_item *item)
{
    struct lane *lane = item->lane;
    item->lane = NULL;
    DL_DELETE(lane->items, item);
    drop_if_empty(l, lane);
}

int64_t lanes_due(const struct lanes *l)
{
    if (l->ready)
        return 0;
    return l->waiting ? l->waiting->due_ms : INT64_MAX;
}

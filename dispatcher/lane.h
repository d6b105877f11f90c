/* Lanes: tasks of one (downstream, event key) go out one at a time, in order of seq; different
 * lanes do not wait for each other. At most a fixed number of a downstream's items are out at once
 * (a bulkhead: one that answers slowly cannot take every slot), and downstreams take turns. One
 * whose call may not be made now is passed over. Holds the order only; knows nothing of what a task
 * is.
 *
 *            put                    take                     end
 *   empty ─────────▶ ready ─────────────────▶ busy ─────────────────▶ ready, or gone when empty
 *                      ▲                        │ hold until t
 *                      └───── t has come ─── waiting                                        */
#ifndef CRCR_DISPATCHER_LANE_H
#define CRCR_DISPATCHER_LANE_H

#include "../common/model/task.h"

/* A downstream is slow when all its slots have been taken for this time and none was freed. It
 * stays slow until its slots fill again within this time. */
#define LANES_SLOW_MS 5000

struct lanes;
struct task_lane;

/* Lives inside the owner's task. */
struct lane_item {
    struct lane_item *prev, *next;
    struct task_lane *lane; /* NULL: in none */
    struct task_seq seq;
};

/* May an item of this downstream be taken? True: it is taken. */
typedef bool lanes_may_fn(void *opaque, struct str downstream);
/* max_out: items of one downstream that are taken and neither held nor ended. */
struct lanes *lanes_new(size_t max_out, lanes_may_fn *may, void *opaque);
/* Items are the owner's and are not freed. NULL is fine. */
void lanes_free(struct lanes *l);
/* Puts an item behind those of a lower or the same seq. The names are copied. */
void lanes_put(struct lanes *l, struct str downstream, struct str event_key,
               struct lane_item *item);
/* The first item of a lane that is due and whose downstream has a slot left, and may be taken; the
 * lane is busy until hold or end. NULL: none. */
struct lane_item *lanes_take(struct lanes *l, int64_t now_ms);
/* An item that waits for a slot of a slow downstream, to be parked: in hand it takes the room of
 * others. *since_ms: since when the downstream is slow. Taken beyond max_out; hold or end it as any
 * other. NULL: none. */
struct lane_item *lanes_take_stuck(struct lanes *l, int64_t now_ms, int64_t *since_ms);
/* The first item that waits behind a taken one, in order of seq (item->next); NULL: none. */
const struct lane_item *lanes_behind(const struct lane_item *item);
/* A taken item goes back into its lane; nothing of its lane is handed out before until_ms. */
void lanes_hold(struct lanes *l, struct lane_item *item, int64_t until_ms);
/* A taken item is finished with. */
void lanes_end(struct lanes *l, struct lane_item *item);
/* An item that was not taken leaves its lane. */
void lanes_remove(struct lanes *l, struct lane_item *item);
/* When to call lanes_take next: 0 as soon as one may be taken, INT64_MAX when no item becomes due
 * by time. */
int64_t lanes_due(const struct lanes *l);

#endif

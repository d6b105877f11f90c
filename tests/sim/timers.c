#include "timers.h"

#include <stdbool.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"

struct timer {
    int64_t due_ms; /* monotonic */
    uint64_t nth;   /* of those that are due at once the first added comes first */
    timer_fn *fire, *drop;
    void *opaque;
};

/* A binary heap: heap[0] is due first, and none before heap[(i - 1) / 2]. */
struct timers {
    struct timer *heap;
    size_t n, room;
    uint64_t added;
};

struct timers *timers_new(void)
{
    return mem_alloc(1, sizeof(struct timers));
}

void timers_free(struct timers *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        t->heap[i].drop(t->heap[i].opaque);
    free(t->heap);
    free(t);
}

static bool is_sooner(const struct timer *a, const struct timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->nth < b->nth;
}

static void swap(struct timer *a, struct timer *b)
{
    struct timer kept = *a;

    *a = *b;
    *b = kept;
}

void timers_add(struct timers *t, int64_t in_ms, timer_fn *fire, timer_fn *drop, void *opaque)
{
    size_t i = t->n++;

    if (t->n > t->room) {
        t->room = t->room ? t->room * 2 : 64;
        t->heap = mem_resize(t->heap, t->room, sizeof(*t->heap));
    }
    t->heap[i] = (struct timer){ clock_mono_ms() + in_ms, t->added++, fire, drop, opaque };
    for (; i > 0 && is_sooner(&t->heap[i], &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&t->heap[i], &t->heap[(i - 1) / 2]);
}

static struct timer first_take(struct timers *t)
{
    struct timer first = t->heap[0];
    size_t i = 0, child;

    t->heap[0] = t->heap[--t->n];
    while ((child = 2 * i + 1) < t->n) {
        if (child + 1 < t->n && is_sooner(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!is_sooner(&t->heap[child], &t->heap[i]))
            break;
        swap(&t->heap[child], &t->heap[i]);
        i = child;
    }
    return first;
}

void timers_run(struct timers *t)
{
    int64_t now_ms = clock_mono_ms();

    while (t->n && t->heap[0].due_ms <= now_ms) {
        struct timer timer = first_take(t);

        timer.fire(timer.opaque);
    }
}

int timers_wait_ms(const struct timers *t, int limit_ms)
{
    int64_t wait_ms = t->n ? t->heap[0].due_ms - clock_mono_ms() : limit_ms;

    if (wait_ms < 0)
        return 0;
    return wait_ms < limit_ms ? (int)wait_ms : limit_ms;
}

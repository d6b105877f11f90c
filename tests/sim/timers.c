#include "timers.h"

#include <stdlib.h>
#include <utlist.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"

struct timer {
    struct timer *prev, *next;
    int64_t due_ms; /* monotonic */
    timer_fn *fire, *drop;
    void *opaque;
};

struct timers {
    struct timer *list; /* soonest first */
};

struct timers *timers_new(void)
{
    return mem_alloc(1, sizeof(struct timers));
}

void timers_free(struct timers *t)
{
    struct timer *timer, *next;

    if (!t)
        return;
    DL_FOREACH_SAFE(t->list, timer, next)
    {
        timer->drop(timer->opaque);
        free(timer);
    }
    free(t);
}

void timers_add(struct timers *t, int64_t in_ms, timer_fn *fire, timer_fn *drop, void *opaque)
{
    struct timer *timer = mem_alloc(1, sizeof(*timer));
    struct timer *after;

    timer->due_ms = clock_mono_ms() + in_ms;
    timer->fire = fire;
    timer->drop = drop;
    timer->opaque = opaque;
    /* New ones are mostly due last: look for the place from the end (list->prev is the tail). */
    after = t->list ? t->list->prev : NULL;
    while (after && after->due_ms > timer->due_ms)
        after = after == t->list ? NULL : after->prev;
    if (after)
        DL_APPEND_ELEM(t->list, after, timer);
    else
        DL_PREPEND(t->list, timer);
}

void timers_run(struct timers *t)
{
    int64_t now_ms = clock_mono_ms();

    while (t->list && t->list->due_ms <= now_ms) {
        struct timer *timer = t->list;

        DL_DELETE(t->list, timer);
        timer->fire(timer->opaque);
        free(timer);
    }
}

int timers_wait_ms(const struct timers *t, int limit_ms)
{
    int64_t wait_ms = t->list ? t->list->due_ms - clock_mono_ms() : limit_ms;

    if (wait_ms < 0)
        return 0;
    return wait_ms < limit_ms ? (int)wait_ms : limit_ms;
}

/* Time as a record: commits and downstreams whose time to be looked at again has come → reconcile.
 *
 *   crcr:due ──leased──▶ reconcile ──acknowledged──▶ off crcr:due
 *       ▲                    │
 *       └─the lease ran out◀─┘ not acknowledged, or killed: marked dirty again */
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/topic_writer.h"
#include "../common/view/due.h"
#include "sweep.h"

#define BATCH     500
#define PERIOD_MS 1000
#define FLUSH_MS  1000

/* One member on its way into the topic; it stays until it is reported. */
struct mark {
    bool stored;
};

static void written(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct mark *mark = opaque;
    (void)at;
    mark->stored = err == OK;
    if (err != OK)
        log_warn("due_not_published", LOG_STR("error", str_of(reason)));
}

static void publish(struct sweep *s, const char *member, struct mark *mark)
{
    struct why why;
    if (topic_writer_put(s->writer, s->reporter->topics.name[TOPIC_RECONCILE], str_of(member),
                         STR_LIT("due"), NULL, written, mark, &why) != OK)
        log_warn("due_not_published", LOG_STR("error", str_of(why.text)));
}

/* Gives how many were not stored; they come again when the lease has run out. */
static size_t batch_publish(struct sweep *s, const struct due_list *list)
{
    struct mark *marks = mem_alloc(list->n + 1, sizeof(*marks));
    struct why why;
    size_t lost = 0;
    for (size_t i = 0; i < list->n; i++)
        publish(s, list->at[i], &marks[i]);
    while (topic_writer_flush(s->writer, FLUSH_MS, &why) != OK)
        role_alive(s->role);
    for (size_t i = 0; i < list->n; i++) {
        lost += !marks[i].stored;
        if (!marks[i].stored)
            continue;
        metrics_add(role_metrics(s->role), METRIC_DUE_MARKED, NULL, 1);
        role_progress(s->role);
        if (due_remove(s->redis, list->at[i], list->lease_end_ms, &why) != OK)
            sweep_redis_seen(s, false, why.text); /* marked once more than needed */
    }
    free(marks);
    return lost;
}

void sweep_due(struct sweep *s)
{
    size_t n, lost = 0;
    s->next_due_ms = clock_mono_ms() + PERIOD_MS;
    do {
        struct due_list list;
        struct why why;
        int64_t past = 0;
        if (due_take(s->redis, clock_wall_ms(), BATCH, &list, &past, &why) != OK) {
            sweep_redis_seen(s, false, why.text);
            return;
        }
        sweep_redis_seen(s, true, NULL);
        metrics_set(role_metrics(s->role), METRIC_DUE, NULL, (double)past);
        n = list.n;
        if (n > 0)
            lost += batch_publish(s, &list);
        due_list_clear(&list);
        role_alive(s->role);
    } while (n > 0 && !s->redis_away && sweep_may_write(s));
    s->lost_due = lost;
    sweep_lag(s);
}

#include "health.h"

#include <inttypes.h>

void health_init(struct health *h, int64_t now_ms)
{
    *h = (struct health){ .lag = -1, .oldest_ms = -1, .alive_ms = now_ms, .progress_ms = now_ms };
}

/* Records that come after a quiet hour have not waited for an hour. */
void health_lag(struct health *h, int64_t lag, int64_t now_ms)
{
    if (lag > 0 && h->lag <= 0)
        h->progress_ms = now_ms;
    h->lag = lag;
}

void health_oldest(struct health *h, int64_t oldest_ms)
{
    h->oldest_ms = oldest_ms;
}

double health_stalled_seconds(const struct health *h, int64_t now_ms)
{
    return h->lag > 0 ? (double)(now_ms - h->progress_ms) / 1e3 : 0;
}

double health_backlog_seconds(const struct health *h, int64_t now_ms, int64_t now_wall_ms)
{
    if (h->lag <= 0)
        return (double)h->lag;
    if (h->oldest_ms < 0)
        return health_stalled_seconds(h, now_ms);
    int64_t age_ms = now_wall_ms - h->oldest_ms;
    return age_ms > 0 ? (double)age_ms / 1e3 : 0; /* the writer's clock may be ahead of ours */
}

void health_waiting(struct health *h, bool waiting, int64_t now_ms)
{
    if (h->waiting && !waiting)
        h->progress_ms = now_ms;
    h->waiting = waiting;
}

enum err health_check(const struct health *h, int64_t now_ms, struct why *why)
{
    if (h->ended)
        return why_set(why, ERR_STOP, "its thread has ended");
    int64_t silent_ms = now_ms - h->alive_ms;
    if (silent_ms > HEALTH_SILENT_MS)
        return why_set(why, ERR_STOP, "no sign of life for %" PRId64 " s", silent_ms / 1000);
    int64_t stalled_ms = now_ms - h->progress_ms;
    if (h->lag > 0 && !h->waiting && stalled_ms > HEALTH_STALLED_MS)
        return why_set(why, ERR_STOP,
                       "%" PRId64 " records wait and nothing moved for %" PRId64 " s", h->lag,
                       stalled_ms / 1000);
    return OK;
}

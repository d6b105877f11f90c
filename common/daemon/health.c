#include "health.h"

#include <inttypes.h>

void health_init(struct health *h, int64_t now_ms)
{
    *h = (struct health){ .lag = -1, .alive_ms = now_ms, .progress_ms = now_ms };
}

/* Records that come after a quiet hour have not stood still for an hour. */
void health_lag(struct health *h, int64_t lag, int64_t now_ms)
{
    if (lag > 0 && h->lag <= 0)
        h->progress_ms = now_ms;
    h->lag = lag;
}

void health_waiting(struct health *h, bool waiting, int64_t now_ms)
{
    if (h->waiting && !waiting)
        h->progress_ms = now_ms;
    h->waiting = waiting;
}

enum err health_judge(const struct health *h, int64_t now_ms, struct why *why)
{
    if (h->ended)
        return why_set(why, ERR_STOP, "its thread has ended");
    int64_t silent_ms = now_ms - h->alive_ms;
    if (silent_ms > HEALTH_PATIENCE_MS)
        return why_set(why, ERR_STOP, "no sign of life for %" PRId64 " s", silent_ms / 1000);
    int64_t still_ms = now_ms - h->progress_ms;
    if (h->lag > 0 && !h->waiting && still_ms > HEALTH_PATIENCE_MS)
        return why_set(why, ERR_STOP,
                       "%" PRId64 " records wait and nothing moved for %" PRId64 " s", h->lag,
                       still_ms / 1000);
    return OK;
}

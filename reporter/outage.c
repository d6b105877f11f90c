#include "outage.h"

bool outage_is(const struct outage *o)
{
    return o->failed >= OUTAGE_COMMITS;
}

bool outage_allows(struct outage *o, int64_t now_ms)
{
    if (!outage_is(o))
        return true;
    if (now_ms < o->probe_ms)
        return false;
    o->probe_ms = now_ms + OUTAGE_PROBE_MS;
    return true;
}

void outage_unasked(struct outage *o)
{
    o->probe_ms = 0;
}

static enum outage_change failed(struct outage *o, unsigned who, int64_t now_ms)
{
    bool was = outage_is(o);
    if (was || (o->failed > 0 && o->last == who)) /* one that fails again may be to blame itself */
        return OUTAGE_SAME;
    o->last = who;
    o->failed++;
    o->probe_ms = now_ms + OUTAGE_PROBE_MS;
    return outage_is(o) ? OUTAGE_BEGAN : OUTAGE_SAME;
}

enum outage_change outage_answered(struct outage *o, unsigned who,
                                   const struct github_answer *answer, int64_t now_ms)
{
    if (answer->err == ERR_UNKNOWN || (answer->err == ERR_RETRY && !answer->limited))
        return failed(o, who, now_ms);
    if (!answer->sent_ms)
        return OUTAGE_SAME;
    bool was = outage_is(o);
    *o = (struct outage){ .failed = 0 };
    return was ? OUTAGE_ENDED : OUTAGE_SAME;
}

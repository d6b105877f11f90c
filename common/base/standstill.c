#include "standstill.h"

void standstill_look(struct standstill *s, int64_t now_ms)
{
    if (now_ms - s->seen_ms > STANDSTILL_MS)
        s->ended_ms = now_ms;
    s->seen_ms = now_ms;
}

bool standstill_since(struct standstill *s, int64_t then_ms, int64_t now_ms)
{
    standstill_look(s, now_ms);
    return then_ms < s->ended_ms;
}

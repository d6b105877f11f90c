#include "rate.h"

#include "keys.h"

extern const char view_rate_lua[];

enum err rate_take(struct redis *r, enum rate_kind kind, struct str repo,
                   const struct rate_limit *limit, int64_t bytes, struct rate_wait *ret,
                   struct why *why)
{
    static const char *const names[] = {
        [RATE_CALLBACKS] = "", [RATE_PENDING] = "|pending", [RATE_COMMITS] = "|commits"
    };
    /* Ingest's threads all come here, and a script remembers its SHA without a lock. */
    static _Thread_local struct redis_script script = { .source = view_rate_lua };
    const struct str argv[] = {
        key_rate(NEW_KEY, repo, names[kind]), STR_NUMBER(bytes),
        STR_NUMBER(limit->requests),          STR_NUMBER(limit->bytes),
        STR_NUMBER(limit->period_s),          STR_NUMBER(limit->bytes_a_day),
    };
    const struct redis_value *v;
    enum err err = redis_call_script(r, &script, 1, 6, argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != 2 || v->items[0].type != REDIS_INT ||
        v->items[1].type != REDIS_INT)
        return why_set(why, ERR_REFUSE, "rate.lua gave no two numbers");
    *ret = (struct rate_wait){ (int)v->items[0].integer, v->items[1].integer == 1 };
    return OK;
}

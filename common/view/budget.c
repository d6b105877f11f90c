#include "budget.h"

#include "keys.h"

#define ARGS   (2 + 4 + 4 * BUDGET_BUCKETS) /* keys; budget.lua has the rest */
#define ANSWER (2 + BUDGET_BUCKETS)

extern const char view_budget_take_lua[];

enum err budget_take_shared(struct redis *r, struct str account, struct str downstream,
                            const struct budget_ask *ask, struct budget_answer *ret,
                            struct why *why)
{
    static _Thread_local struct redis_script script = { .source = view_budget_take_lua };
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) share;
    int64_t numbers[ARGS - 2] = { ask->limited_us, ask->lower_us, ask->share_cost_us,
                                  ask->share_room_us };
    char text[ARGS - 2][STR_NUMBER_SIZE];
    struct str argv[ARGS];
    const struct redis_value *v;
    for (size_t b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t *to = numbers + 4 + 4 * b;
        to[0] = ask->of[b].cost_us;
        to[1] = ask->of[b].room_us;
        to[2] = ask->of[b].over_us;
        to[3] = ask->of[b].full_us;
    }
    buf_init(&key, VIEW_KEY_MAX);
    buf_init(&share, VIEW_KEY_MAX);
    argv[0] = key_budget(&key, account);
    argv[1] = key_budget_share(&share, account, downstream);
    for (size_t i = 0; i < ARGS - 2; i++)
        argv[2 + i] = str_number(text[i], numbers[i]);
    enum err err = redis_call_script(r, &script, 2, ARGS, argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != ANSWER)
        return why_set(why, ERR_REFUSE, "budget.lua gave an answer of another shape");
    int64_t bucket = v->items[1].integer; /* from 1; 0: none of them */
    *ret = (struct budget_answer){
        .wait_us = v->items[0].integer,
        .bucket = bucket > 0 ? (enum budget_bucket)(bucket - 1) : BUDGET_REQUESTS_HOUR,
        .limited = bucket == 0 && v->items[0].integer > 0,
    };
    for (size_t b = 0; b < BUDGET_BUCKETS; b++)
        ret->used_us[b] = v->items[2 + b].integer;
    return OK;
}

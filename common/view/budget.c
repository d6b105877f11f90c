#include "budget.h"

#include <string.h>

#include "keys.h"

extern const char view_budget_take_lua[];

void budget_args(const struct budget_bill *bill, struct budget_args *ret)
{
    const struct budget_ask *ask = &bill->ask;
    int64_t numbers[BUDGET_ARGS] = { ask->limited_us, ask->lower_us, ask->share_cost_us,
                                     ask->share_room_us };
    for (size_t b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t *to = numbers + 4 + 4 * b;
        to[0] = ask->of[b].cost_us;
        to[1] = ask->of[b].room_us;
        to[2] = ask->of[b].over_us;
        to[3] = ask->of[b].full_us;
    }
    buf_init(&ret->account, VIEW_KEY_MAX);
    buf_init(&ret->share, VIEW_KEY_MAX);
    ret->key[0] = key_budget(&ret->account, bill->account);
    ret->key[1] = key_budget_share(&ret->share, bill->account, bill->downstream);
    for (size_t i = 0; i < BUDGET_ARGS; i++)
        ret->arg[i] = str_number(ret->text[i], numbers[i]);
}

void budget_args_clear(struct budget_args *args)
{
    buf_clear(&args->account);
    buf_clear(&args->share);
}

void budget_answer_read(const struct redis_value *items, struct budget_answer *ret)
{
    int64_t bucket = items[1].integer; /* from 1; 0: none of them */
    *ret = (struct budget_answer){
        .wait_us = items[0].integer,
        .bucket = bucket > 0 ? (enum budget_bucket)(bucket - 1) : BUDGET_REQUESTS_HOUR,
        .limited = bucket == 0 && items[0].integer > 0,
    };
    for (size_t b = 0; b < BUDGET_BUCKETS; b++)
        ret->used_us[b] = items[2 + b].integer;
}

enum err budget_take_shared(struct redis *r, const struct budget_bill *bill,
                            struct budget_answer *ret, struct why *why)
{
    static _Thread_local struct redis_script script = { .source = view_budget_take_lua };
    struct budget_args CLEANUP(budget_args_clear) args;
    struct str argv[BUDGET_KEYS + BUDGET_ARGS];
    const struct redis_value *v;
    budget_args(bill, &args);
    memcpy(argv, args.key, sizeof(args.key));
    memcpy(argv + BUDGET_KEYS, args.arg, sizeof(args.arg));
    enum err err =
        redis_call_script(r, &script, BUDGET_KEYS, BUDGET_KEYS + BUDGET_ARGS, argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != BUDGET_ANSWER)
        return why_set(why, ERR_REFUSE, "budget.lua gave an answer of another shape");
    budget_answer_read(v->items, ret);
    return OK;
}

#include "budget_shared.h"

#include <string.h>

#include "keys.h"

extern const char view_budget_take_lua[];

void budget_args(const struct budget_bill *bill, struct budget_args *ret)
{
    const struct budget_ask *ask = &bill->ask;
    double *to = ret->numbers;
    char pr[STR_NUMBER_SIZE + 1] = "#";
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as the script reads them");
    *to++ = (double)ask->limited_us;
    *to++ = (double)ask->lower_us;
    *to++ = (double)ask->share_room_us;
    *to++ = (double)ask->share_cost_us[BUDGET_SHARE_DOWNSTREAM];
    *to++ = bill->pr > 0 ? (double)ask->share_cost_us[BUDGET_SHARE_PR] : 0;
    for (size_t b = 0; b < BUDGET_BUCKETS; b++) {
        *to++ = (double)ask->of[b].cost_us;
        *to++ = (double)ask->of[b].room_us;
        *to++ = (double)ask->of[b].over_us;
        *to++ = (double)ask->of[b].full_us;
    }
    ret->packed = (struct str){ (const char *)ret->numbers, sizeof(ret->numbers) };
    str_number(pr + 1, bill->pr);
    ret->key[0] = key_budget(&ret->account, bill->account);
    ret->key[1] = key_budget_share(&ret->share[0], bill->account, bill->downstream);
    ret->key[2] = key_budget_share(&ret->share[1], bill->account, str_of(pr));
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
    struct budget_args args;
    struct str argv[BUDGET_KEYS + 1];
    const struct redis_value *v;
    budget_args(bill, &args);
    memcpy(argv, args.key, sizeof(args.key));
    argv[BUDGET_KEYS] = args.packed;
    enum err err = redis_call_script(r, &script, BUDGET_KEYS, BUDGET_KEYS + 1, argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != BUDGET_ANSWER)
        return why_set(why, ERR_REFUSE, "budget_shared.lua gave an answer of another shape");
    budget_answer_read(v->items, ret);
    return OK;
}

static int64_t from_now(double until_us, int64_t now_us)
{
    return until_us > (double)now_us ? (int64_t)until_us - now_us : 0;
}

enum err budget_used_get(struct redis *r, const struct str *accounts, size_t n,
                         struct budget_used *ret, struct why *why)
{
    const struct redis_value *v;
    struct redis_batch batch = { .redis = r, .why = why };
    int64_t seconds = 0, micros = 0;
    enum err err = redis_call(r, &v, REDIS_ARGS(STR_LIT("TIME")), why);
    if (!err && (v->n != 2 || !str_to_i64(v->items[0].text, &seconds) ||
                 !str_to_i64(v->items[1].text, &micros)))
        err = why_set(why, ERR_REFUSE, "Redis gave no time");
    for (size_t i = 0; !err && i < n; i++)
        redis_batch_put(&batch, REDIS_ARGS(STR_LIT("GET"), key_budget(NEW_KEY, accounts[i])));
    for (size_t i = 0; (v = redis_batch_next(&batch)); i++) {
        double until_us[1 + BUDGET_BUCKETS] = { 0 }; /* absent: all is full */
        bool stored = v->type == REDIS_STR;
        if (stored && v->text.len != sizeof(until_us)) {
            err = why_set(why, ERR_REFUSE, "a budget of another shape");
            continue;
        }
        if (stored)
            memcpy(until_us, v->text.ptr, sizeof(until_us));
        ret[i].limited_us = from_now(until_us[0], seconds * 1000000 + micros);
        for (size_t b = 0; b < BUDGET_BUCKETS; b++)
            ret[i].used_us[b] = from_now(until_us[1 + b], seconds * 1000000 + micros);
    }
    return err ? err : batch.err;
}

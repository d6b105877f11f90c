#include "budget_shared.h"

#include <string.h>

#include "keys.h"

extern const char view_budget_take_lua[];

void budget_args(const struct budget_bill *bill, struct budget_args *ret)
{
    const struct budget_ask *ask = &bill->ask;
    const int64_t *share_us = ask->share_cost_us;
    double *to = ret->numbers;
    char pr[STR_NUMBER_SIZE + 1] = "#";
    bool pr_pays = bill->pr > 0 && share_us[BUDGET_SHARE_PR] > 0;
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as the script reads them");
    *to++ = (double)ask->limited_us;
    *to++ = (double)ask->lower_us;
    *to++ = (double)ask->share_room_us;
    *to++ = (double)share_us[BUDGET_SHARE_DOWNSTREAM];
    *to++ = pr_pays ? (double)share_us[BUDGET_SHARE_PR] : 0;
    for (size_t b = 0; b < BUDGET_BUCKETS; b++) {
        if (!ask->of[b].cost_us)
            continue;
        *to++ = (double)(b + 1);
        *to++ = (double)ask->of[b].cost_us;
        *to++ = (double)ask->of[b].room_us;
        *to++ = (double)ask->of[b].over_us;
        *to++ = (double)ask->of[b].full_us;
    }
    ret->packed =
        (struct str){ (const char *)ret->numbers, (size_t)(to - ret->numbers) * sizeof(double) };
    ret->n_keys = 0;
    ret->key[ret->n_keys++] = key_budget(&ret->account, bill->account);
    if (share_us[BUDGET_SHARE_DOWNSTREAM] > 0)
        ret->key[ret->n_keys++] = key_budget_share(&ret->share[0], bill->account, bill->downstream);
    str_number(pr + 1, bill->pr);
    if (pr_pays)
        ret->key[ret->n_keys++] = key_budget_share(&ret->share[1], bill->account, str_of(pr));
}

static int64_t from_now(double until_us, int64_t now_us)
{
    return until_us > (double)now_us ? (int64_t)until_us - now_us : 0;
}

/* What is in an account's key. False: something else. */
static bool account_read(struct str text, int64_t now_us, struct budget_used *ret)
{
    double until_us[1 + BUDGET_BUCKETS];
    if (text.len != sizeof(until_us))
        return false;
    memcpy(until_us, text.ptr, sizeof(until_us));
    ret->limited_us = from_now(until_us[0], now_us);
    for (size_t b = 0; b < BUDGET_BUCKETS; b++)
        ret->used_us[b] = from_now(until_us[1 + b], now_us);
    return true;
}

enum err budget_answer_read(const struct redis_value *items, size_t n, struct budget_answer *ret,
                            struct why *why)
{
    struct budget_used used;
    if (n < 2 || !account_read(items[0].text, items[1].integer, &used))
        return why_set(why, ERR_REFUSE, "budget_shared.lua gave an answer of another shape");
    *ret = (struct budget_answer){ .wait_us = 0 };
    memcpy(ret->used_us, used.used_us, sizeof(ret->used_us));
    if (n < 4)
        return OK;
    int64_t bucket = items[3].integer; /* from 1; 0: none of them */
    ret->wait_us = items[2].integer;
    ret->bucket = bucket > 0 ? (enum budget_bucket)(bucket - 1) : BUDGET_REQUESTS_HOUR;
    ret->limited = bucket == 0 && ret->wait_us > 0;
    return OK;
}

enum err budget_take_shared(struct redis *r, const struct budget_bill *bill,
                            struct budget_answer *ret, struct why *why)
{
    static _Thread_local struct redis_script script = { .source = view_budget_take_lua };
    struct budget_args args;
    struct str argv[BUDGET_KEYS + 1];
    const struct redis_value *v;
    budget_args(bill, &args);
    memcpy(argv, args.key, args.n_keys * sizeof(argv[0]));
    argv[args.n_keys] = args.packed;
    enum err err = redis_call_script(r, &script, args.n_keys, args.n_keys + 1, argv, &v, why);
    return err ? err : budget_answer_read(v->items, v->n, ret, why);
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
        ret[i] = (struct budget_used){ .limited_us = 0 }; /* absent: all is full */
        if (v->type == REDIS_STR && !account_read(v->text, seconds * 1000000 + micros, &ret[i]))
            err = why_set(why, ERR_REFUSE, "a budget of another shape");
    }
    return err ? err : batch.err;
}

#include "budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "keys.h"

#define FIXED       7 /* arguments before those of the buckets; budget.lua has the same */
#define EACH        5
#define ARGS        (1 + FIXED + EACH * BUDGET_BUCKETS)
#define NUMBER_SIZE 24
#define ANSWER      (3 + BUDGET_BUCKETS)

extern const char view_budget_lua[];

struct arguments {
    struct str at[ARGS];
    char text[ARGS][NUMBER_SIZE];
    size_t n;
};

static void put(struct arguments *a, int64_t value)
{
    int n = snprintf(a->text[a->n], NUMBER_SIZE, "%" PRId64, value);
    a->at[a->n] = (struct str){ a->text[a->n], (size_t)n };
    a->n++;
}

static void put_bucket(struct arguments *a, const struct budget_rules *rules,
                       const struct budget_ask *ask, enum budget_bucket b)
{
    bool limited = rules->limit[b] > 0;
    int cost = limited ? ask->cost.of[b] : 0;
    put(a, budget_window_ms(rules, b));
    put(a, rules->limit[b]);
    put(a, budget_cap(rules, b, ask->low, false, cost));
    put(a, cost);
    put(a, limited ? ask->untold[b] : 0);
}

static enum err answer_read(const struct redis_value *v, struct budget_grant *ret, struct why *why)
{
    if (v->type != REDIS_ARRAY || v->n != ANSWER)
        return why_set(why, ERR_REFUSE, "budget.lua gave an answer of another shape");
    for (size_t i = 0; i < v->n; i++)
        if (v->items[i].type != REDIS_INT)
            return why_set(why, ERR_REFUSE, "budget.lua gave something that is no number");
    int64_t bucket = v->items[2].integer; /* from 1; 0: none */
    *ret = (struct budget_grant){
        .calls = (int)v->items[0].integer,
        .wait_ms = v->items[1].integer,
        .bucket = bucket > 0 ? (enum budget_bucket)(bucket - 1) : BUDGET_REQUESTS_HOUR,
        .limited = bucket == 0 && v->items[1].integer > 0,
    };
    for (size_t b = 0; b < BUDGET_BUCKETS; b++)
        ret->left[b] = v->items[3 + b].integer;
    return OK;
}

enum err budget_take(struct redis *r, const struct budget_rules *rules,
                     const struct budget_ask *ask, struct budget_grant *ret, struct why *why)
{
    /* Every thread that calls GitHub comes here, and a script remembers its SHA without a lock. */
    static _Thread_local struct redis_script script = { .source = view_budget_lua };
    struct buf CLEANUP(buf_clear) key;
    struct arguments a = { .n = 1 };
    const struct redis_value *v;
    buf_init(&key, VIEW_KEY_MAX);
    a.at[0] = key_budget(&key, ask->account);
    put(&a, ask->calls);
    put(&a, BUDGET_LIFE_MS);
    put(&a, ask->low ? rules->kept_percent : 0);
    put(&a, ask->seen_left);
    put(&a, ask->seen_limit);
    put(&a, ask->seen_reset_ms);
    put(&a, ask->seen_limited_ms > 0 ? ask->seen_limited_ms : 0);
    for (int b = 0; b < BUDGET_BUCKETS; b++)
        put_bucket(&a, rules, ask, (enum budget_bucket)b);
    enum err err = redis_call_script(r, &script, 1, a.n, a.at, &v, why);
    return err ? err : answer_read(v, ret, why);
}

enum err budget_take_from(void *redis, const struct budget_rules *rules,
                          const struct budget_ask *ask, struct budget_grant *ret, struct why *why)
{
    return budget_take(redis, rules, ask, ret, why);
}

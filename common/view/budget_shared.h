/* GitHub's budget as all replicas share it (common/model/budget.h): crcr:budget:us:<account>.
 * Redis's clock counts, so that replicas need not agree on the time. */
#ifndef CRCR_VIEW_BUDGET_SHARED_H
#define CRCR_VIEW_BUDGET_SHARED_H

#include "../io/redis.h"
#include "../model/budget.h"
#include "keys.h"

/* Who pays what for a call. downstream may be absent when the call is no content. pr 0: for none.
 */
struct budget_bill {
    struct str account, downstream;
    int64_t pr;
    struct budget_ask ask;
};

/* One Lua step: takes the call's cost of the account, and of its shares, or nothing.
 * Errors: Redis is unavailable; after ERR_UNKNOWN it may have been taken. */
enum err budget_take_shared(struct redis *r, const struct budget_bill *bill,
                            struct budget_answer *ret, struct why *why) MUST_CHECK;

/* What is used of an account, for who only looks. */
struct budget_used {
    int64_t used_us[BUDGET_BUCKETS]; /* until each is full again, for budget_left */
    int64_t limited_us;              /* for how much longer GitHub asked one of us to wait; 0 */
};
/* Of n accounts (names of owners, or "*"), ret[i] is the i-th. */
enum err budget_used_get(struct redis *r, const struct str *accounts, size_t n,
                         struct budget_used *ret, struct why *why) MUST_CHECK;

/* For a script that takes it in the same step as something else (claim.lua): its keys, its one
 * argument, and what it returns. Numbers are packed, as doubles: as text, reading them would cost
 * Redis more than all else. */
#define BUDGET_KEYS (1 + BUDGET_SHARES)
struct budget_args {
    struct str key[BUDGET_KEYS], packed; /* borrow from the rest */
    size_t n_keys;
    struct key account, share[BUDGET_SHARES];
    double numbers[3 + BUDGET_SHARES + 5 * BUDGET_BUCKETS];
};
/* ret must not move. */
void budget_args(const struct budget_bill *bill, struct budget_args *ret);
/* items: what is in the account's key, Redis's time in us; refused also wait_us and the bucket,
 * from 1 on (0: GitHub asked us to wait). ERR_REFUSE: something else. */
enum err budget_answer_read(const struct redis_value *items, size_t n, struct budget_answer *ret,
                            struct why *why) MUST_CHECK;

#endif

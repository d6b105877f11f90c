/* GitHub's budget, shared by all replicas: crcr:budget:<account>. Counted by Redis' clock, so that
 * replicas need not agree on the time. */
#ifndef CRCR_VIEW_BUDGET_H
#define CRCR_VIEW_BUDGET_H

#include "../io/redis.h"
#include "../model/budget.h"

/* One Lua step. Errors: Redis is away (the caller takes a part of the limits for itself); after
 * ERR_UNKNOWN it may have been taken. */
enum err budget_take(struct redis *r, const struct budget_rules *rules,
                     const struct budget_ask *ask, struct budget_grant *ret,
                     struct why *why) MUST_CHECK;
/* The same as a github_budget_store_fn (common/github/budget.h); opaque is the struct redis, of the
 * calling thread. */
enum err budget_take_from(void *redis, const struct budget_rules *rules,
                          const struct budget_ask *ask, struct budget_grant *ret,
                          struct why *why) MUST_CHECK;

#endif

/* GitHub's budget as all replicas share it (common/model/budget.h): crcr:budget:<account>. Redis's
 * clock counts, so that replicas need not agree on the time. */
#ifndef CRCR_VIEW_BUDGET_H
#define CRCR_VIEW_BUDGET_H

#include "../io/redis.h"
#include "../model/budget.h"

/* One Lua step: takes the call's cost of the account, and of the downstream's share, or nothing.
 * downstream may be absent when the call is no content. Errors: Redis is unavailable; after
 * ERR_UNKNOWN it may have been taken. */
enum err budget_take_shared(struct redis *r, struct str account, struct str downstream,
                            const struct budget_ask *ask, struct budget_answer *ret,
                            struct why *why) MUST_CHECK;

#endif

/* The last seq of each lane in which calls were made without a claim: Redis has to learn of it, or
 * an older event of the same pull request follows a newer one. Of this process only: what is not
 * told when it ends is lost. One thread. */
#ifndef CRCR_DISPATCHER_UNTOLD_H
#define CRCR_DISPATCHER_UNTOLD_H

#include "../common/io/redis.h"
#include "../common/model/task.h"

/* Beyond that the lane that came first is forgotten. */
#define UNTOLD_MAX 10000

struct untold;

struct untold *untold_new(void);
/* NULL is fine. */
void untold_free(struct untold *u);
/* A call is being made. lane is copied; the later of two seqs stays. */
void untold_put(struct untold *u, struct str lane, const struct task_seq *seq);
/* Whether a later one of that lane is remembered. */
bool untold_is_later(const struct untold *u, struct str lane, const struct task_seq *seq);
/* Tells Redis all, in few round trips, and forgets what it took. Asks nothing when there is
 * nothing. ERR_RETRY, ERR_UNKNOWN as redis_collect. */
enum err untold_tell(struct untold *u, struct redis *redis, struct why *why) MUST_CHECK;
size_t untold_count(const struct untold *u);

#endif

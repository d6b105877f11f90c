/* What this process called of late in each lane, for when Redis cannot be asked, or forgot it: an
 * older event of the same pull request does not follow a newer one, and the twin of a task that was
 * sent (another record of the same delivery) is not sent again. Of this process only: what Redis
 * was not told when it ends is lost. One thread. */
#ifndef CRCR_DISPATCHER_CALLED_H
#define CRCR_DISPATCHER_CALLED_H

#include "../common/io/redis.h"
#include "../common/model/task.h"

/* Beyond that the lane that was called in longest ago is forgotten. */
#define CALLED_MAX     10000
/* Deliveries that are remembered of a lane. Where a batch is in its topic twice the twins come
 * behind the others of it: the last one alone would not do. A full lane takes 1.5 KB. */
#define CALLED_IN_LANE 16

struct called;

struct called *called_new(void);
/* NULL is fine. */
void called_free(struct called *c);
/* A call is being made. lane (<downstream>|<event key>) and delivery (at most DELIVERY_MAX) are
 * copied; the later of two seqs stays. redis_knows: the seq is Redis's already, or is none of its
 * business; else called_tell tells it. */
void called_put(struct called *c, struct str lane, const struct task_seq *seq, struct str delivery,
                bool redis_knows);
enum called_as {
    CALLED_NOT,   /* not known of, or surely not worked on */
    CALLED_MAYBE, /* no answer was seen */
    CALLED_SENT,  /* GitHub took it */
};
/* What became of the call, when that delivery is one of the lane's last. Only ever more than was
 * known before: CALLED_NOT changes nothing. */
void called_ended(struct called *c, struct str lane, struct str delivery, enum called_as how);
/* Whether a later one of that lane is remembered. */
bool called_is_later(const struct called *c, struct str lane, const struct task_seq *seq);
/* Redis took an older one for the last of that lane: it is told anew. */
void called_tell_again(struct called *c, struct str lane);
/* What became of that delivery, when it is one of the lane's last. */
enum called_as called_how(const struct called *c, struct str lane, struct str delivery);
/* Tells Redis the seqs that it does not know, in few round trips; asks nothing when there are none.
 * ERR_RETRY, ERR_UNKNOWN as redis_collect. */
enum err called_tell(struct called *c, struct redis *redis, struct why *why) MUST_CHECK;
/* Lanes that are remembered, and those of which Redis does not know. */
size_t called_count(const struct called *c);
size_t called_untold(const struct called *c);

#endif

/* The two records that a dispatcher writes: a task for a sender, and the outcome of one. */
#ifndef CRCR_DISPATCHER_POSTS_H
#define CRCR_DISPATCHER_POSTS_H

#include "../common/model/task.h"
#include "../common/worker/worker.h"

/* Puts a task into the topic of its tier, under its event's key. value is the payload; it must live
 * until stored. */
void post_task(struct work *work, const struct task *task, struct str event_key, struct str value);
/* Puts an outcome into the topic dispatches. */
void post_outcome(struct work *work, const struct outcome *outcome);

#endif

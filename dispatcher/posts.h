/* The two records that a dispatcher writes: tasks for a sender, and the outcome of one. */
#ifndef CRCR_DISPATCHER_POSTS_H
#define CRCR_DISPATCHER_POSTS_H

#include "../common/model/task.h"
#include "../common/worker/worker.h"

/* Puts the tasks of up to TASK_REPOS_MAX downstreams into the topic of their tier, as one record
 * with the key of the event. repos: task_repos, instead of the task's own repo. value is the
 * payload; it must live until stored. */
void post_tasks(struct work *work, const struct task *task, struct str repos, struct str value);
/* Puts an outcome into the topic dispatches. */
void post_outcome(struct work *work, const struct outcome *outcome);

#endif

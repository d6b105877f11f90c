/* What /pipeline and the cards of "/" show. The thread of the role web looks at Kafka and Redis
 * every 5 s (10 s when a look takes long), and follows the topics `dlq` (from the beginning) and
 * `dispatches` (24 hours). Requests, on other threads, get the last look: none waits for Kafka. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_H
#define CRCR_REPORTER_WEB_PIPELINE_H

#include "../reporter.h"

struct pipeline;

/* Kafka and Redis may be unavailable. reporter and role must outlive it. */
enum err pipeline_new(struct pipeline **ret, const struct reporter *reporter, struct role_ctx *role,
                      struct why *why) MUST_CHECK;
/* Runs until the role is to stop, and a few seconds more when Kafka does not answer. It is watched
 * (daemon_watch) as "pipeline", since live.c calls role_alive for the role. */
void pipeline_run(struct pipeline *p);
/* NULL is fine. */
void pipeline_free(struct pipeline *p);
/* Appends the JSON of /api/crcr/pipeline, or of /api/crcr/health; nothing before the first look.
 * Any thread. */
void pipeline_get(struct pipeline *p, bool health, struct buf *to);
/* As dispatch_day_put_one, now. Any thread. */
void pipeline_dispatches_put(struct pipeline *p, struct str repo, int64_t heard_ms,
                             int64_t silent_ms, struct buf *to);
/* Until when no aggregate check run can be made for want of budget at the upstream; 0: one can, or
 * it is not known. Wall clock; any thread. */
int64_t pipeline_budget_until(struct pipeline *p);

#endif

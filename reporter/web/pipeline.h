/* What /pipeline and the cards of "/" show: the thread of the role web looks at Kafka and Redis
 * every 5 s (10 s when that took long), and follows the topics `dlq` (from its beginning) and
 * `dispatches` (of 24 hours). Requests, which have other threads, get what was seen last: none
 * waits for Kafka. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_H
#define CRCR_REPORTER_WEB_PIPELINE_H

#include "../reporter.h"

struct pipeline;

/* Kafka and Redis need not be there. reporter and role must outlive it. */
enum err pipeline_new(struct pipeline **ret, const struct reporter *reporter, struct role_ctx *role,
                      struct why *why) MUST_CHECK;
/* Looks until the role is to stop, and a few seconds more when Kafka does not answer. daemon_watch
 * knows its sign of life as "pipeline": that of the role is live's. */
void pipeline_run(struct pipeline *p);
/* NULL is fine. */
void pipeline_free(struct pipeline *p);
/* Appends the JSON of /api/crcr/pipeline, or of /api/crcr/health; nothing before the first look.
 * Any thread. */
void pipeline_get(struct pipeline *p, bool health, struct buf *to);

#endif

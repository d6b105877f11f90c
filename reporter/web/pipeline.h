/* What /pipeline and the cards of "/" show: a thread of its own looks at Kafka and Redis every 5 s
 * (10 s when that took long), and follows the topics `dlq` (from its beginning) and `dispatches`
 * (of 24 hours). Requests get what was seen last: none waits for Kafka. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_H
#define CRCR_REPORTER_WEB_PIPELINE_H

#include "../reporter.h"

struct pipeline;

/* Starts the thread, whose sign of life daemon_watch knows as "pipeline". Kafka and Redis need not
 * be there. The reporter must outlive it. */
enum err pipeline_new(struct pipeline **ret, const struct reporter *reporter, struct role_ctx *role,
                      struct why *why) MUST_CHECK;
/* Waits for the end of a look, a few seconds when Kafka does not answer. NULL is fine. */
void pipeline_free(struct pipeline *p);
/* Appends the JSON of /api/crcr/pipeline, or of /api/crcr/health; nothing before the first look.
 * Any thread. */
void pipeline_get(struct pipeline *p, bool health, struct buf *to);

#endif

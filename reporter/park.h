/* Records that cannot be done now are moved aside: to a delay topic when later may help, else to
 * the dead-letter queue, where one goes as well that is too large for us to write whole (burial.h).
 * The caller finishes its own record once the copy is stored. */
#ifndef CRCR_REPORTER_PARK_H
#define CRCR_REPORTER_PARK_H

#include "reporter.h"

/* class: poison, refused, exhausted. done and opaque as topic_writer_put. */
enum err park_in_dlq(struct topic_writer *w, const struct topics *topics,
                     const struct record *record, const char *class, const char *error,
                     topic_written_fn *done, void *opaque, struct why *why) MUST_CHECK;

/* How often this record has been parked in a delay topic already. */
int64_t park_count(const struct record *record);
/* Into the delay topic that follows count earlier stays: 1m, 10m, 1h. False when all were used:
 * the caller then chooses the dead-letter queue. */
bool park_delay_left(int64_t count);
enum err park_in_delay(struct topic_writer *w, const struct topics *topics,
                       const struct record *record, const char *error, topic_written_fn *done,
                       void *opaque, struct why *why) MUST_CHECK;
/* Into the delay topic that suits a wait of wait_ms. It is not counted: nothing failed. */
enum err park_until(struct topic_writer *w, const struct topics *topics,
                    const struct record *record, int64_t wait_ms, const char *error,
                    topic_written_fn *done, void *opaque, struct why *why) MUST_CHECK;

#endif

/* Reads single records by their place, without a group: what a group has not committed yet, and
 * how old the ends of a topic are. Blocking; for one thread. */
#ifndef CRCR_IO_TOPIC_PEEK_H
#define CRCR_IO_TOPIC_PEEK_H

#include "kafka.h"

struct topic_peek;

/* Does not connect yet. */
enum err topic_peek_new(struct topic_peek **ret, const struct kafka_options *options,
                        struct why *why) MUST_CHECK;
/* NULL is fine. */
void topic_peek_free(struct topic_peek *p);

/* The record at the i-th place, or the next one that is there where compaction or retention took
 * it. Valid during the call. */
typedef void topic_peek_fn(void *opaque, size_t i, const struct record *record);
/* Calls found at most once for each of n places, in any order; not where nothing more is there.
 * Topics are borrowed for the call. ERR_RETRY: timeout_ms passed before all were read. */
enum err topic_peek_read(struct topic_peek *p, const struct topic_position *at, size_t n,
                         int timeout_ms, topic_peek_fn *found, void *opaque,
                         struct why *why) MUST_CHECK;

#endif

/* Where partitions begin and end. rd_kafka_query_watermark_offsets (librdkafka 2.0.2) would wait
 * beyond its time-out for a broker that is unavailable, and asks each partition on its own. Private
 * to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_ENDS_H
#define CRCR_IO_TOPIC_ENDS_H

#include <stdint.h>

#include "topic_client.h"

struct rd_kafka_s;
struct rd_kafka_topic_partition_list_s;

struct topic_end {
    int64_t first; /* the offset of the oldest record there is */
    int64_t end;   /* one past the newest */
};

/* ends[i] becomes that of the list's i-th partition. Waits at most timeout_ms, twice. ERR_RETRY:
 * one was not reported, named; or none, for librdkafka does not say whose leader is unavailable. */
enum err topic_ends_ask(struct rd_kafka_s *rk, const struct rd_kafka_topic_partition_list_s *of,
                        int timeout_ms, struct topic_end *ends, struct why *why) MUST_CHECK;

/* The list's offsets are times, wall-clock ms. Each becomes the offset of the first record of that
 * time or later, or RD_KAFKA_OFFSET_END when there is none. A mock cluster says "none" of every
 * time: there each becomes RD_KAFKA_OFFSET_BEGINNING, and the caller reads older records too.
 * ERR_RETRY: at least one has no answer. Waits at most timeout_ms. */
enum err topic_ends_at_times(struct topic_client *c, struct rd_kafka_topic_partition_list_s *list,
                             int timeout_ms, struct why *why) MUST_CHECK;

#endif

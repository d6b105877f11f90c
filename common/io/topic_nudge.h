/* Gets librdkafka (2.0.2) to fetch on. Its broker thread looks at the queue of fetched records when
 * something happens on its connection; when it finds the queue full (queued.max.messages.kbytes) it
 * sleeps up to a second, and neither an emptied queue nor a resumed partition wakes it: 240 MB of
 * backlog at 100 µs a record take 31 s instead of 1.3 s. Any request to that broker wakes it.
 * From 2.2 on fetch.queue.backoff.ms does that, and this does nothing.
 * Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_NUDGE_H
#define CRCR_IO_TOPIC_NUDGE_H

#include <stddef.h>

struct rd_kafka_s;
struct rd_kafka_topic_partition_list_s;

/* Half of what the queue may hold (queued.max.messages.kbytes, queued.min.messages): then it has
 * room again. A record counts for its value, and for some more, so that many small ones come to it
 * too. */
#define TOPIC_NUDGE_BYTES        (2u << 20)
#define TOPIC_NUDGE_RECORD_BYTES (4u << 10)

/* Sends a cheap request to the leaders of the partitions and waits for nothing. list's offsets are
 * overwritten. */
void topic_nudge(struct rd_kafka_s *rk, struct rd_kafka_topic_partition_list_s *list);

#endif

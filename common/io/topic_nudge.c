#include "topic_nudge.h"

#include <librdkafka/rdkafka.h>

/* librdkafka 2.2 and later need no nudge: fetch.queue.backoff.ms (topic_client.c). */
#if RD_KAFKA_VERSION < 0x020200ff
void topic_nudge(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list)
{
    /* ListOffsets for "latest": the broker looks nothing up. Nobody reads the answer. */
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    rd_kafka_offsets_for_times(rk, list, 0);
}
#else
void topic_nudge(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list)
{
    (void)rk;
    (void)list;
}
#endif

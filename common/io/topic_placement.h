/* Partitions that librdkafka asks of a broker that does not lead them. When a leader goes and comes
 * back before librdkafka's thread of that broker had time to see it (it waits for a name server,
 * say), the partition is left at the other broker
 * (https://github.com/confluentinc/librdkafka/pull/5593): for as long as the handle lives its
 * records time out, or are not read, and no error tells of it. Its statistics do
 * (https://github.com/confluentinc/librdkafka/blob/v2.0.2/STATISTICS.md, topics.partitions.broker
 * and .leader). Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_PLACEMENT_H
#define CRCR_IO_TOPIC_PLACEMENT_H

#include "../base/str.h"

/* Between two statistics, and not to be chosen by the operator. A partition that is on its way from
 * broker to broker is astray in one of them; told in three in a row, it stays so. */
#define TOPIC_PLACEMENT_EVERY_MS "30000"

struct json_t;

struct topic_placement {
    struct json_t *seen; /* what was astray last: its description, and how often in a row */
    char lasting[400];   /* the first that has stayed so */
};

void topic_placement_init(struct topic_placement *p);
void topic_placement_clear(struct topic_placement *p);
/* One of librdkafka's statistics. What is no such JSON tells of nothing. */
void topic_placement_see(struct topic_placement *p, struct str statistics);
/* "callbacks [3] is asked of broker 2, but broker 1 leads it"; NULL: none has stayed so. Borrowed
 * from p, until the next is seen. */
const char *topic_placement_astray(const struct topic_placement *p);

#endif

/* Tells whether a group member is between JoinGroup and SyncGroup. An offset commit sent then waits
 * behind the join on the coordinator's connection, is answered "illegal generation", and librdkafka
 * (2.0.2) takes that for a lost assignment: every record in hand would be done twice. librdkafka
 * tells nobody, so its requests are watched. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_JOINING_H
#define CRCR_IO_TOPIC_JOINING_H

#include <stdatomic.h>
#include <stdbool.h>

struct rd_kafka_conf_s;

struct topic_joining {
    atomic_bool now;      /* set and read by different threads */
    atomic_bool answered; /* a JoinGroup was, ever */
};

/* joining must live as long as the handle made from conf. */
void topic_joining_watch(struct topic_joining *joining, struct rd_kafka_conf_s *conf);

#endif

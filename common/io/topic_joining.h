/* Watches what a group member asks its coordinator, since librdkafka tells nobody: how long its
 * session lasts at least, and whether it is between JoinGroup and SyncGroup. An offset commit sent
 * then waits behind the join on the coordinator's connection, is answered "illegal generation", and
 * librdkafka (2.0.2) takes that for a lost assignment: every record in hand would be done twice.
 * Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_JOINING_H
#define CRCR_IO_TOPIC_JOINING_H

#include <stdatomic.h>
#include <stdbool.h>

struct rd_kafka_conf_s;

struct topic_joining {
    atomic_bool now;       /* set and read by different threads */
    atomic_bool settled;   /* no JoinGroup since the last assignment was taken over */
    atomic_bool answered;  /* a JoinGroup was, ever */
    atomic_llong asked_ms; /* clock_boot_ms: the last request that prolongs the session was sent */
    atomic_llong known_ms; /* … of those that were answered: the session began anew after that */
};

/* joining must live as long as the handle made from conf. */
void topic_joining_watch(struct topic_joining *joining, struct rd_kafka_conf_s *conf);

#endif

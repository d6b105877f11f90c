/* What a group member asks its coordinator, since librdkafka does not say: how long its session
 * lasts at least, and whether it is between JoinGroup and SyncGroup. An offset commit sent then
 * waits behind the join on the coordinator's connection, is answered "illegal generation", and
 * librdkafka (2.0.2) takes that for a lost assignment: every record in hand would be done twice.
 * Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_SESSION_H
#define CRCR_IO_TOPIC_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

struct rd_kafka_conf_s;

/* Written by librdkafka's threads. */
struct topic_session {
    atomic_bool joining;   /* a JoinGroup was sent, the SyncGroup after it is not answered */
    atomic_bool joined;    /* a JoinGroup was answered, ever */
    atomic_llong asked_ms; /* clock_boot_ms: the last request that prolongs the session was sent */
    atomic_llong known_ms; /* … of those that were answered: the session began anew after that */
};

/* Zeroed, and alive as long as the handle made from conf. */
void topic_session_watch(struct topic_session *session, struct rd_kafka_conf_s *conf);

#endif

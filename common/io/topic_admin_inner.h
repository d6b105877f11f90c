/* What the files of topic_admin share. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_ADMIN_INNER_H
#define CRCR_IO_TOPIC_ADMIN_INNER_H

#include "topic_client.h"

struct rd_kafka_queue_s;
struct rd_kafka_AdminOptions_s;
struct rd_kafka_op_s;

struct topic_admin {
    struct topic_client client; /* first: librdkafka's opaque */
    struct rd_kafka_queue_s *answers;
    int timeout_ms;
};

/* Options with the time-out, the caller's to destroy. op: enum rd_kafka_admin_op_t. */
struct rd_kafka_AdminOptions_s *topic_admin_request(struct topic_admin *a, int op);
/* The answer (rd_kafka_event_t) to a request just sent, the caller's to destroy; *err says how the
 * request went: ERR_RETRY no answer, ERR_STOP the broker does not know this kind of request,
 * ERR_REFUSE. */
struct rd_kafka_op_s *topic_admin_await(struct topic_admin *a, enum err *err, struct why *why);
void topic_admin_event_clear(struct rd_kafka_op_s **event);

/* What the brokers say of a topic's settings: a DescribeConfigs result with one resource, without
 * an error of its own. The caller destroys it, also after an error. */
struct rd_kafka_op_s *topic_admin_describe(struct topic_admin *a, const char *topic, enum err *err,
                                           struct why *why);

#endif

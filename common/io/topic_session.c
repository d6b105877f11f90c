#include "topic_session.h"

#include <librdkafka/rdkafka.h>

#include "../base/clock.h"

/* https://kafka.apache.org/protocol#protocol_api_keys */
#define JOIN_GROUP 11
#define HEARTBEAT  12
#define SYNC_GROUP 14

static bool prolongs(int16_t key)
{
    return key == JOIN_GROUP || key == HEARTBEAT || key == SYNC_GROUP;
}

static rd_kafka_resp_err_t on_sent(rd_kafka_t *rk, int fd, const char *broker, int32_t broker_id,
                                   int16_t key, int16_t version, int32_t correlation, size_t size,
                                   void *opaque)
{
    struct topic_session *s = opaque;

    (void)rk, (void)fd, (void)broker, (void)broker_id, (void)version, (void)correlation, (void)size;
    if (key == JOIN_GROUP)
        atomic_store(&s->joining, true);
    if (prolongs(key))
        atomic_store(&s->asked_ms, clock_boot_ms());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_received(rd_kafka_t *rk, int fd, const char *broker,
                                       int32_t broker_id, int16_t key, int16_t version,
                                       int32_t correlation, size_t size, int64_t rtt,
                                       rd_kafka_resp_err_t err, void *opaque)
{
    struct topic_session *s = opaque;

    (void)rk, (void)fd, (void)broker, (void)broker_id, (void)version, (void)correlation, (void)size;
    (void)rtt;
    if (key == JOIN_GROUP)
        atomic_store(&s->joined, true);
    if (key == SYNC_GROUP)
        atomic_store(&s->joining, false);
    if (prolongs(key) && !err) /* err: no answer came, but a time-out or a reset */
        atomic_store(&s->known_ms, atomic_load(&s->asked_ms));
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque,
                                  char *text, size_t size)
{
    (void)conf, (void)text, (void)size;
    rd_kafka_interceptor_add_on_request_sent(rk, "session", on_sent, opaque);
    return rd_kafka_interceptor_add_on_response_received(rk, "session", on_received, opaque);
}

void topic_session_watch(struct topic_session *session, rd_kafka_conf_t *conf)
{
    rd_kafka_conf_interceptor_add_on_new(conf, "session", on_new, session);
}

#include "kafka.h"

#include <librdkafka/rdkafka.h>

#include "bench.h"

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)))
        bench_die("%s", why);
}

static rd_kafka_conf_t *conf_new(const char *brokers, const char *const settings[][2])
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "socket.nagle.disable", "true");
    for (; (*settings)[0]; settings++)
        set(conf, (*settings)[0], (*settings)[1]);
    return conf;
}

static rd_kafka_t *client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof(why));
    if (!rk)
        bench_die("%s", why);
    return rk;
}

rd_kafka_t *kafka_producer(const char *brokers, const char *const settings[][2],
                           kafka_on_report *on_report, void *opaque)
{
    rd_kafka_conf_t *conf = conf_new(brokers, settings);
    if (on_report)
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, opaque);
    return client_new(RD_KAFKA_PRODUCER, conf);
}

rd_kafka_t *kafka_consumer(const char *brokers, const char *const settings[][2])
{
    return client_new(RD_KAFKA_CONSUMER, conf_new(brokers, settings));
}

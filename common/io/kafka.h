/* What topic_writer and topic_reader share: how to reach the brokers. */
#ifndef CRCR_IO_KAFKA_H
#define CRCR_IO_KAFKA_H

#include "../base/err.h"
#include "../base/str.h"

/* One librdkafka property, e.g. "security.protocol" = "SASL_SSL" (from CRCR_KAFKA_*). */
struct kafka_property {
    const char *name;
    const char *value;
};

struct kafka_options {
    const char *brokers;   /* host:port[,host:port…] */
    const char *client_id; /* "crcr-ingest" */
    const struct kafka_property *properties;
    size_t n_properties;
};

/* Where a record lies. topic is borrowed. */
struct topic_position {
    const char *topic;
    int32_t partition;
    int64_t offset;
};

#endif

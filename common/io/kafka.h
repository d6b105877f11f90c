/* Shared by common/io/topic_*: how to reach the brokers, and what a record is. */
#ifndef CRCR_IO_KAFKA_H
#define CRCR_IO_KAFKA_H

#include "../base/err.h"
#include "../base/headers.h"

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

/* The position of a record. topic is borrowed. */
struct topic_position {
    const char *topic;
    int32_t partition;
    int64_t offset;
};

/* A record that was read. Everything is borrowed; the function that returns it says for how long.
 */
struct record {
    struct topic_position at;
    int64_t timestamp_ms;   /* broker's or producer's, as the topic says */
    struct str key;         /* ptr NULL when the record has none */
    struct str value;       /* ptr NULL for a tombstone */
    struct headers headers; /* at most HEADERS_MAX; values are bytes, not validated */
    void *user;             /* for the owner of the record */
};

#endif

/* Brokers in memory, for what needs one that refuses, is unavailable or hands over a partition. */
#ifndef CRCR_TESTS_BROKER_FIXTURE_H
#define CRCR_TESTS_BROKER_FIXTURE_H

#define BROKER_WRITE_MS 20000
#define BROKER_TOPIC    "events" /* one partition; the first broker leads it */

struct brokers {
    rd_kafka_t *host; /* the threads of the brokers */
    rd_kafka_mock_cluster_t *cluster;
    const char *addresses;
};

static inline rd_kafka_t *brokers_client(rd_kafka_type_t type, const char *addresses)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    rd_kafka_conf_set(conf, "bootstrap.servers", addresses, NULL, 0);
    if (type == RD_KAFKA_CONSUMER)
        rd_kafka_conf_set(conf, "group.id", "nobody", NULL, 0);
    rd_kafka_t *rk = rd_kafka_new(type, conf, reason, sizeof(reason));
    assert_non_null(rk);
    return rk;
}

/* n of them, numbered from 1. */
static inline struct brokers brokers_begin(int n)
{
    struct brokers b = { .host = brokers_client(RD_KAFKA_PRODUCER, "") };

    b.cluster = rd_kafka_mock_cluster_new(b.host, n);
    b.addresses = rd_kafka_mock_cluster_bootstraps(b.cluster);
    assert_int_equal(rd_kafka_mock_topic_create(b.cluster, BROKER_TOPIC, 1, 1), 0);
    rd_kafka_mock_partition_set_leader(b.cluster, BROKER_TOPIC, 0, 1);
    return b;
}

/* Writes n records, "x", and waits until they are stored. */
static inline void brokers_write(const struct brokers *b, int n)
{
    rd_kafka_t *rk = brokers_client(RD_KAFKA_PRODUCER, b->addresses);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, BROKER_TOPIC, NULL);

    for (int i = 0; i < n; i++)
        assert_int_equal(rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, "x", 1,
                                          NULL, 0, NULL),
                         0);
    assert_int_equal(rd_kafka_flush(rk, BROKER_WRITE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

static inline void brokers_end(struct brokers *b)
{
    rd_kafka_mock_cluster_destroy(b->cluster);
    rd_kafka_destroy(b->host);
}

#endif

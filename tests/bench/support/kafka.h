/* librdkafka alone, for the drivers that are a floor under the relay. */
#ifndef CRCR_BENCH_KAFKA_H
#define CRCR_BENCH_KAFKA_H

struct rd_kafka_s;         /* rd_kafka_t */
struct rd_kafka_message_s; /* rd_kafka_message_t */

typedef void kafka_on_report(struct rd_kafka_s *rk, const struct rd_kafka_message_s *message,
                             void *opaque);

/* Clients with these settings, each { name, value }, up to { NULL }; the brokers and "no Nagle" are
 * set for all. on_report may be NULL; rd_kafka_poll calls it with opaque. */
struct rd_kafka_s *kafka_producer(const char *brokers, const char *const settings[][2],
                                  kafka_on_report *on_report, void *opaque);
struct rd_kafka_s *kafka_consumer(const char *brokers, const char *const settings[][2]);

#endif

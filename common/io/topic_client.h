/* What writer, reader, follower and admin share: a configured librdkafka handle, and the last
 * trouble that it reported (librdkafka's own log lines are off: library code does not log). Private
 * to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_CLIENT_H
#define CRCR_IO_TOPIC_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "../base/wake.h"
#include "kafka.h"

/* 26 MiB: a webhook of 25 MiB, its key, its headers and the batch around it. */
#define TOPIC_MESSAGE_MAX_BYTES "27262976"
/* Of a batch that is written, and of a partition that is fetched. A broker gives a larger batch
 * only to the first partition of a fetch that has something
 * (https://kafka.apache.org/documentation/#consumerconfigs_max.partition.fetch.bytes), so that with
 * larger batches some partitions would wait until the others have been read to their end. One
 * record that is larger by itself may still wait so, behind a backlog. */
#define TOPIC_BATCH_BYTES       "65536"

struct rd_kafka_s;
struct rd_kafka_conf_s;
struct rd_kafka_message_s;
struct rd_kafka_metadata;
struct rd_kafka_queue_s;
struct rd_kafka_topic_partition_list_s;

/* First member of those who use it: librdkafka's opaque pointer is this one. */
struct topic_client {
    struct rd_kafka_s *rk;
    char *brokers; /* for error texts */
    pthread_mutex_t lock;
    char trouble[256];       /* under lock: what librdkafka last complained of */
    const char *remedy;      /* under lock, static: what to do about it */
    atomic_bool unavailable; /* librdkafka has lost every broker */
};

/* Names and values; the last one has a NULL name. */
typedef struct kafka_property topic_setting;

/* What the delivery rules fix of every consumer. */
extern const topic_setting topic_consumer_fixed[];

/* Begins a zeroed client, also when it fails, with a configuration: ours that the operator may
 * change (defaults), the operator's own, ours that the delivery rules fix. *ret is the caller's
 * until topic_client_open takes it. ERR_STOP names the property that librdkafka refused. */
enum err topic_client_configure(struct topic_client *c, const struct kafka_options *options,
                                const topic_setting *defaults, const topic_setting *fixed,
                                struct rd_kafka_conf_s **ret, struct why *why) MUST_CHECK;
/* Creates the handle; takes over conf also when it fails. */
enum err topic_client_open(struct topic_client *c, bool producer, struct rd_kafka_conf_s *conf,
                           struct why *why) MUST_CHECK;
/* Both for a consumer without a group, which reads what rd_kafka_assign gives it. defaults NULL:
 * those for reading topics from end to end. */
enum err topic_client_open_groupless(struct topic_client *c, const struct kafka_options *options,
                                     const topic_setting *defaults, struct why *why) MUST_CHECK;
/* Ends the handle, if there is one; a consumer has left its group before. Takes one that is zeroed
 * or half-built. */
void topic_client_clear(struct topic_client *c);
/* Remembers what went wrong, for the next error text. Any thread. */
void topic_client_trouble(struct topic_client *c, const char *text);
/* "cannot reach Kafka at <brokers>: <last trouble>: <what to do>". What to do: look at
 * KAFKA_BROKERS; after a refused login, at the SASL settings; after a failed TLS handshake, at
 * those of TLS. */
enum err topic_client_unreachable(struct topic_client *c, struct why *why);
/* True when librdkafka cannot go on. */
bool topic_client_fatal(struct topic_client *c, struct why *why);
/* A consumer's next message, a record or the end of a partition, the caller's; NULL when none came
 * until until_ms (monotonic). Other errors are remembered. */
struct rd_kafka_message_s *topic_client_poll(struct topic_client *c, int64_t until_ms);
/* Fills record with what borrows from message. Headers past HEADERS_MAX are left out. */
void topic_client_record(const struct rd_kafka_message_s *message, struct record *record);
/* Wakes whenever something comes into the empty queue. */
void topic_client_wake(struct rd_kafka_queue_s *queue, const struct wake *wake);
/* Stops fetching a partition, or goes on. */
void topic_client_pause(struct topic_client *c, const char *topic, int32_t partition, bool pause);
/* The cluster's metadata; ERR_RETRY when no broker answers in timeout_ms. */
enum err topic_client_metadata(struct topic_client *c, int timeout_ms,
                               const struct rd_kafka_metadata **ret, struct why *why) MUST_CHECK;
/* How many partitions the topic has; 0: there is no such topic. */
int topic_client_partition_count(const struct rd_kafka_metadata *metadata, const char *topic);
/* Asks for the metadata and adds each partition of these topics to list (may be NULL). ERR_STOP
 * names the topics that do not exist. */
enum err topic_client_partitions(struct topic_client *c, const char *const *topics, size_t n,
                                 int timeout_ms, struct rd_kafka_topic_partition_list_s *list,
                                 struct why *why) MUST_CHECK;
/* True at librdkafka's mock cluster (`crcr-sim broker`), which knows neither configs nor the times
 * of its records. Waits at most timeout_ms; not at all after topic_client_metadata. */
bool topic_client_is_mock(struct topic_client *c, int timeout_ms);

struct topic_end {
    int64_t first; /* the offset of the oldest record there is */
    int64_t end;   /* one past the newest */
};

/* ends[i] becomes that of the list's i-th partition. Waits at most timeout_ms, twice. ERR_RETRY: at
 * least one was not reported; why names it if librdkafka does. (rd_kafka_query_watermark_offsets of
 * librdkafka 2.0.2 waits beyond its timeout for a broker that is unavailable, and asks one
 * partition at a time.) */
enum err topic_client_ends(struct topic_client *c, const struct rd_kafka_topic_partition_list_s *of,
                           int timeout_ms, struct topic_end *ends, struct why *why) MUST_CHECK;
/* The list's offsets are times, wall-clock ms. Each becomes the offset of the first record of that
 * time or later, or RD_KAFKA_OFFSET_END when there is none. A mock cluster says "none" of every
 * time: there each becomes RD_KAFKA_OFFSET_BEGINNING, and the caller reads older records too.
 * ERR_RETRY: at least one has no answer. Waits at most timeout_ms. */
enum err topic_client_offsets_at_times(struct topic_client *c,
                                       struct rd_kafka_topic_partition_list_s *list, int timeout_ms,
                                       struct why *why) MUST_CHECK;

#endif

#include "topic_peek.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"

/* One record of each partition is wanted: librdkafka fetches little ahead. A broker gives a record
 * that is larger all the same. */
static const topic_setting defaults[] = {
    { "fetch.message.max.bytes", "65536" },
    { "fetch.max.bytes", "4194304" },
    { "queued.max.messages.kbytes", "4096" },
    { NULL, NULL },
};

struct topic_peek {
    struct topic_client client; /* first: librdkafka's opaque */
};

enum err topic_peek_new(struct topic_peek **ret, const struct kafka_options *options,
                        struct why *why)
{
    struct topic_peek *p = mem_alloc(1, sizeof(*p));
    enum err err = topic_client_open_groupless(&p->client, options, defaults, why);
    if (err)
        topic_peek_free(p);
    else
        *ret = p;
    return err;
}

void topic_peek_free(struct topic_peek *p)
{
    if (!p)
        return;
    topic_client_clear(&p->client);
    free(p);
}

/* Of places that are not read, one of each partition; opaque is its place plus one. */
static rd_kafka_topic_partition_list_t *next_round(const struct topic_position *at, size_t n,
                                                   const bool *done)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    for (size_t i = 0; i < n; i++) {
        if (done[i] || rd_kafka_topic_partition_list_find(list, at[i].topic, at[i].partition))
            continue;
        rd_kafka_topic_partition_t *p =
            rd_kafka_topic_partition_list_add(list, at[i].topic, at[i].partition);
        p->offset = at[i].offset;
        p->opaque = (void *)(i + 1);
    }
    return list;
}

enum err topic_peek_read(struct topic_peek *p, const struct topic_position *at, size_t n,
                         int timeout_ms, topic_peek_fn *found, void *opaque, struct why *why)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    bool *done = mem_alloc(n + 1, sizeof(*done));
    size_t left = n;
    rd_kafka_message_t *message = NULL;
    do {
        rd_kafka_topic_partition_list_t *round = next_round(at, n, done);
        int wanted = round->cnt;
        rd_kafka_assign(p->client.rk, round);
        while (wanted > 0 && (message = topic_client_poll(&p->client, deadline))) {
            const char *topic = rd_kafka_topic_name(message->rkt);
            rd_kafka_topic_partition_t *of =
                rd_kafka_topic_partition_list_find(round, topic, message->partition);
            if (of && of->opaque) {
                size_t i = (size_t)of->opaque - 1;
                struct record record;
                if (!message->err) {
                    topic_client_record(message, &record);
                    found(opaque, i, &record);
                }
                done[i] = true;
                of->opaque = NULL;
                wanted--;
                left--;
            }
            rd_kafka_message_destroy(message);
        }
        rd_kafka_topic_partition_list_destroy(round);
    } while (left > 0 && message);
    rd_kafka_assign(p->client.rk, NULL);
    free(done);
    return left ? topic_client_unreachable(&p->client, why) : OK;
}

/* How a member leaves its group. */
#include <librdkafka/rdkafka.h>

#include "../base/clock.h"
#include "topic_reader_inner.h"

#define CLOSE_MS  5000
#define LEAVE_MS  12000
#define JOINED_MS 3000

static void serve(struct topic_reader *r)
{
    /* Not rd_kafka_queue_poll_callback: it aborts on records that were fetched already. */
    rd_kafka_message_t *fetched = rd_kafka_consume_queue(r->queue, 100);
    if (fetched)
        rd_kafka_message_destroy(fetched);
}

bool topic_reader_may_go(const struct topic_reader *r)
{
    return !atomic_load(&r->joining.answered) || r->was_assigned;
}

void topic_reader_leave(struct topic_reader *r)
{
    int64_t joined_by = clock_mono_ms() + JOINED_MS;

    while (!topic_reader_may_go(r) && clock_mono_ms() < joined_by)
        serve(r);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(r->client.rk, r->queue);
    int64_t deadline = clock_mono_ms() + (r->n_partitions ? LEAVE_MS : CLOSE_MS);

    if (error) {
        rd_kafka_error_destroy(error);
        return;
    }
    while (!rd_kafka_consumer_closed(r->client.rk) && clock_mono_ms() < deadline) {
        size_t before = r->n_partitions;
        serve(r);
        if (r->n_partitions != before)
            deadline = clock_mono_ms() + CLOSE_MS;
    }
}

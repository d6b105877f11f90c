/* How a member leaves its group. */
#include <librdkafka/rdkafka.h>

#include "../base/clock.h"
#include "topic_reader_inner.h"

#define GIVEN_MS  2000 /* at once, unless others are waited for */
#define LEAVE_MS  12000
#define CLOSE_MS  5000
#define JOINED_MS 3000
#define SERVE_MS  100

/* False when there was nothing to do. */
static bool serve(struct topic_reader *r)
{
    /* Not rd_kafka_queue_poll_callback: it aborts on records that were fetched already. */
    size_t before = r->n_partitions;
    rd_kafka_message_t *fetched = rd_kafka_consume_queue(r->queue, SERVE_MS);
    if (fetched)
        rd_kafka_message_destroy(fetched);
    return fetched || r->n_partitions != before;
}

/* Closed while an assignment is under way, librdkafka (2.0.2; its issue 4527) may wait for ever for
 * what became of it. So all is given back first. */
static void give_back(struct topic_reader *r)
{
    int64_t deadline = clock_mono_ms() + GIVEN_MS;

    rd_kafka_unsubscribe(r->client.rk);
    while ((serve(r) || r->n_partitions) && clock_mono_ms() < deadline)
        ;
}

/* librdkafka (2.0.2; its issue 4312) aborts when the handle is destroyed between the answer to
 * JoinGroup and the first assignment. */
static bool may_go(const struct topic_reader *r)
{
    return !atomic_load(&r->joining.answered) || r->was_assigned;
}

bool topic_reader_leave(struct topic_reader *r)
{
    int64_t joined_by = clock_mono_ms() + JOINED_MS;

    while (!may_go(r) && clock_mono_ms() < joined_by)
        (void)serve(r);
    give_back(r);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(r->client.rk, r->queue);
    int64_t deadline = clock_mono_ms() + (r->n_partitions ? LEAVE_MS : CLOSE_MS);

    if (error) {
        rd_kafka_error_destroy(error);
        return may_go(r);
    }
    while (!rd_kafka_consumer_closed(r->client.rk) && clock_mono_ms() < deadline) {
        size_t before = r->n_partitions;
        (void)serve(r);
        if (r->n_partitions != before)
            deadline = clock_mono_ms() + CLOSE_MS;
    }
    return may_go(r) && rd_kafka_consumer_closed(r->client.rk);
}

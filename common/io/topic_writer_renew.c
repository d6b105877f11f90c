/* librdkafka (2.0.2) ends an idempotent producer for good when a broker does not know the sequence
 * that it goes on with: one that hung for longer than message.timeout.ms and came back is enough
 * (OUT_OF_ORDER_SEQUENCE_NUMBER). All that was stored is stored, what was not acknowledged is
 * unknown, as after any time-out: a new producer can go on. One that is refused before it stored
 * anything (no right to write) is not made again.
 *
 * A producer may also stick to a broker that no longer leads a partition (its pull request 5593):
 * one whose records time out for 30 s on end, while brokers are there, is replaced, too. */
#include <librdkafka/rdkafka.h>

#include "topic_writer_inner.h"

#define CLOSE_MS    1000
#define LATE_MS     30000 /* records time out for so long: a new producer */
#define LATE_GAP_MS 15000 /* between two that belong together */

enum err topic_writer_open(struct topic_writer *w, struct why *why)
{
    return topic_client_open(&w->client, true, rd_kafka_conf_dup(w->conf), why);
}

void topic_writer_arm(struct topic_writer *w)
{
    static const uint64_t one = 1; /* an eventfd takes 8 bytes */

    if (w->wake) {
        w->reports = rd_kafka_queue_get_main(w->client.rk);
        rd_kafka_queue_io_event_enable(w->reports, w->wake->fd, &one, sizeof(one));
    }
    rd_kafka_poll(w->client.rk, 0); /* arms the wake-up */
}

rd_kafka_t *topic_writer_hold(struct topic_writer *w)
{
    pthread_mutex_lock(&w->swap);
    w->users++;
    rd_kafka_t *rk = w->client.rk;
    pthread_mutex_unlock(&w->swap);
    return rk;
}

void topic_writer_let_go(struct topic_writer *w)
{
    pthread_mutex_lock(&w->swap);
    w->users--;
    pthread_mutex_unlock(&w->swap);
}

static void forget(rd_kafka_queue_t *reports)
{
    if (!reports)
        return;
    rd_kafka_queue_io_event_enable(reports, -1, NULL, 0);
    rd_kafka_queue_destroy(reports);
}

void topic_writer_close(rd_kafka_t *rk, rd_kafka_queue_t *reports)
{
    forget(reports);
    if (!rk)
        return;
    rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(rk, CLOSE_MS); /* the reports of what was purged */
    rd_kafka_destroy(rk);
}

static void *destroy(void *rk)
{
    rd_kafka_destroy(rk);
    return NULL;
}

/* It takes as long as a name server that one of its threads waits for. */
static void destroy_apart(rd_kafka_t *rk)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, destroy, rk) != 0)
        destroy(rk);
    else
        pthread_detach(thread);
}

/* Until the last of its records is reported. */
static void serve_retired(struct topic_writer *w)
{
    rd_kafka_t *old = w->retired;

    rd_kafka_poll(old, 0);
    if (rd_kafka_outq_len(old))
        return;
    pthread_mutex_lock(&w->swap);
    w->retired = NULL;
    pthread_mutex_unlock(&w->swap);
    forget(w->retired_reports);
    w->retired_reports = NULL;
    destroy_apart(old);
}

/* False: not now, somebody is in a call of it. */
static bool swap(struct topic_writer *w)
{
    struct why why;

    pthread_mutex_lock(&w->swap);
    if (!w->users) {
        w->retired = w->client.rk;
        if (topic_writer_open(w, &why)) { /* as it was */
            w->client.rk = w->retired;
            w->retired = NULL;
            atomic_store(&w->hopeless, true);
        }
    }
    pthread_mutex_unlock(&w->swap);
    return w->retired;
}

void topic_writer_late(struct topic_writer *w, int64_t now_ms)
{
    if (now_ms - atomic_load(&w->late_ms) > LATE_GAP_MS)
        atomic_store(&w->late_since_ms, now_ms);
    atomic_store(&w->late_ms, now_ms);
}

static bool is_stuck(struct topic_writer *w)
{
    int64_t since_ms = atomic_load(&w->late_since_ms), last_ms = atomic_load(&w->late_ms);

    if (!since_ms || last_ms - since_ms < LATE_MS || topic_client_unavailable(&w->client))
        return false;
    (void)why_set(&w->broken, ERR_UNKNOWN, "Kafka client: records timed out for %d s on end",
                  LATE_MS / 1000);
    atomic_store(&w->late_since_ms, 0);
    atomic_store(&w->late_ms, 0);
    return true;
}

/* One that takes its place works from the beginning, also while a thread of the old one hangs. */
void topic_writer_renew(struct topic_writer *w)
{
    if (w->retired) {
        serve_retired(w);
        return;
    }
    if (atomic_load(&w->hopeless))
        return;
    bool fatal = topic_client_fatal(&w->client, &w->broken);
    if (!fatal && !is_stuck(w))
        return;
    if (fatal && !atomic_load(&w->stored)) {
        atomic_store(&w->hopeless, true);
        return;
    }
    if (!swap(w))
        return;
    w->retired_reports = w->reports;
    w->reports = NULL;
    atomic_store(&w->stored, false);
    rd_kafka_purge(w->retired, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                   RD_KAFKA_PURGE_F_NON_BLOCKING);
    topic_writer_arm(w);
}

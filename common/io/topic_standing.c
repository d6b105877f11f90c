#include "topic_standing.h"

#include <librdkafka/rdkafka.h>

#define RESTART_MS 1000
#define SILENT_MAX 3600000
#define GAP_MS     5000 /* between two looks: nobody read */

static bool is_unread(const struct topic_partition *p)
{
    return !p->paused && watermark_offset(&p->mark) < 0;
}

void topic_standing_note(struct topic_reader *r, struct topic_partition *p, int64_t now_mono_ms)
{
    for (size_t i = 0; !p && i < r->n_partitions; i++)
        topic_standing_note(r, r->partitions[i], now_mono_ms);
    if (!p || watermark_offset(&p->mark) >= 0)
        return;
    p->standing = true;
    if (!r->restart_due)
        r->restart_due = now_mono_ms + RESTART_MS;
}

static rd_kafka_topic_partition_list_t *standing_of(struct topic_reader *r, int64_t now_mono_ms)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        if (p->standing && watermark_offset(&p->mark) < 0) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->id);
            p->anew_ms = now_mono_ms;
        }
        p->standing = false;
    }
    return list;
}

static void tell(struct topic_reader *r, rd_kafka_error_t *error)
{
    if (!error)
        return;
    topic_client_trouble(&r->client, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

/* Whoever holds all of them back holds these back, too. */
static void pause_again(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *paused = rd_kafka_topic_partition_list_new(list->cnt);

    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        const struct topic_partition *p = topic_reader_find(r, t->topic, t->partition);
        if (p && p->paused)
            rd_kafka_topic_partition_list_add(paused, t->topic, t->partition);
    }
    if (paused->cnt)
        rd_kafka_pause_partitions(r->client.rk, paused);
    rd_kafka_topic_partition_list_destroy(paused);
}

void topic_standing_restart(struct topic_reader *r, int64_t now_mono_ms)
{
    /* While a rebalance is under way, or waits to be served, what is assigned anew would be taken
     * for the answer to it. */
    if (!r->restart_due || now_mono_ms < r->restart_due || !atomic_load(&r->joining.settled) ||
        rd_kafka_assignment_lost(r->client.rk))
        return;
    rd_kafka_topic_partition_list_t *list = standing_of(r, now_mono_ms);
    r->restart_due = 0;
    if (list->cnt) {
        tell(r, rd_kafka_incremental_unassign(r->client.rk, list));
        tell(r, rd_kafka_incremental_assign(r->client.rk, list));
        pause_again(r, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

void topic_standing_look(struct topic_reader *r, int64_t now_mono_ms)
{
    bool gap = now_mono_ms - r->looked_ms > GAP_MS;

    r->looked_ms = now_mono_ms;
    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        if (gap)
            p->anew_ms = now_mono_ms;
        if (!is_unread(p) || p->standing || now_mono_ms - p->anew_ms < p->patience_ms)
            continue;
        p->patience_ms = 2 * p->patience_ms < SILENT_MAX ? 2 * p->patience_ms : SILENT_MAX;
        topic_standing_note(r, p, now_mono_ms);
    }
}

void topic_standing_paused(struct topic_partition *p, bool pause, int64_t now_mono_ms)
{
    if (pause) {
        p->paused_ms = now_mono_ms;
        return;
    }
    p->asked_ms += now_mono_ms - p->paused_ms;
    p->anew_ms += now_mono_ms - p->paused_ms;
}

void topic_standing_count(const struct topic_reader *r, struct topic_reader_share *share,
                          int64_t now_mono_ms)
{
    for (size_t i = 0; i < r->n_partitions; i++) {
        const struct topic_partition *p = r->partitions[i];
        if (!is_unread(p))
            continue;
        share->unread++;
        if (now_mono_ms - p->asked_ms > share->unread_ms)
            share->unread_ms = now_mono_ms - p->asked_ms;
    }
}

enum err topic_reader_judge_unread(struct topic_reader *r, struct why *why)
{
    const struct topic_partition *first = NULL;

    for (size_t i = 0; i < r->n_partitions; i++) {
        const struct topic_partition *p = r->partitions[i];
        if (watermark_offset(&p->mark) < 0 && (!first || p->asked_ms < first->asked_ms))
            first = p;
    }
    if (!first)
        return OK;
    pthread_mutex_lock(&r->client.lock);
    enum err err = why_set(why, ERR_RETRY, "%s [%d]; last error: %s", first->topic, (int)first->id,
                           r->client.trouble[0] ? r->client.trouble : "none");
    pthread_mutex_unlock(&r->client.lock);
    return err;
}

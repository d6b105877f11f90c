#include "topic_partition.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_record.h"

struct topic_partition *topic_partition_new(const char *topic, int32_t id)
{
    struct topic_partition *p = mem_alloc(1, sizeof(*p));

    p->topic = mem_dup(topic);
    p->id = id;
    p->moved_ms = clock_mono_ms();
    p->committing = -1;
    watermark_init(&p->mark);
    return p;
}

void topic_partition_free(struct topic_partition *p)
{
    if (!p)
        return;
    topic_partition_orphan(p);
    watermark_clear(&p->mark);
    free(p->topic);
    free(p);
}

static void unlink_held(struct held *h)
{
    struct topic_partition *p = h->partition;

    DL_DELETE(p->held, h);
    p->n_held--;
    p->held_bytes -= h->bytes;
    h->partition = NULL;
}

/* Offsets went back: the topic was made anew or lost its end, or librdkafka reads some again. What
 * is in hand from there on is read again. What is below stays: it may be this log's. */
static void go_back(struct topic_partition *p, int64_t offset)
{
    struct held *h, *next;

    DL_FOREACH_SAFE(p->held, h, next)
    if (h->record.at.offset >= offset)
        unlink_held(h);
    watermark_back(&p->mark, offset);
    p->committing = -1;
}

/* A copy, since librdkafka keeps all that one fetch brought for as long as one record of it is
 * held: a few hundred that wait for long would hold hundreds of megabytes. */
struct held *topic_partition_take(struct topic_partition *p, rd_kafka_message_t *message)
{
    if (!watermark_take(&p->mark, message->offset)) {
        go_back(p, message->offset);
        (void)watermark_take(&p->mark, message->offset);
    }
    struct held *h = mem_alloc(1, sizeof(*h));
    h->partition = p;
    topic_record_fill(&h->record, message);
    h->copy = topic_record_detach(&h->record);
    rd_kafka_message_destroy(message);
    h->bytes = topic_record_bytes(&h->record);
    DL_APPEND(p->held, h);
    p->moved_ms = clock_mono_ms();
    p->n_held++;
    p->held_bytes += h->bytes;
    return h;
}

static void held_free(struct held *h)
{
    if (h->partition)
        unlink_held(h);
    free(h->copy);
    free(h);
}

void topic_partition_orphan(struct topic_partition *p)
{
    while (p->held)
        unlink_held(p->held);
}

int64_t topic_partition_due(const struct topic_partition *p)
{
    int64_t offset = watermark_offset(&p->mark);

    return offset == p->committing ? -1 : offset;
}

void record_done(struct record *record)
{
    struct held *h = (struct held *)record;

    if (!h)
        return;
    if (h->partition)
        watermark_done(&h->partition->mark, h->record.at.offset);
    held_free(h);
}

void record_drop(struct record *record)
{
    if (record)
        held_free((struct held *)record);
}

bool record_is_of(const struct record *record, const struct topic_position *partitions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (partitions[i].partition == record->at.partition &&
            !strcmp(partitions[i].topic, record->at.topic))
            return true;
    return false;
}

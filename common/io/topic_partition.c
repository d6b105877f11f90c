#include "topic_partition.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/mem.h"

struct topic_partition *topic_partition_new(const char *topic, int32_t id, int64_t committed)
{
    struct topic_partition *p = mem_alloc(1, sizeof(*p));

    p->topic = mem_dup(topic);
    p->id = id;
    p->next = p->expected = p->committing = committed >= 0 ? committed : -1;
    p->dropped = -1;
    return p;
}

static void unlink_held(struct held *h)
{
    struct topic_partition *p = h->partition;

    DL_DELETE(p->held, h);
    p->n_held--;
    p->held_bytes -= h->bytes;
    h->partition = NULL;
}

void topic_partition_free(struct topic_partition *p)
{
    if (!p)
        return;
    while (p->held)
        unlink_held(p->held);
    free(p->topic);
    free(p);
}

struct topic_partition *topic_partition_find(struct topic_partition *list, const char *topic,
                                             int32_t id)
{
    while (list && (list->id != id || strcmp(list->topic, topic) != 0))
        list = list->list_next;
    return list;
}

/* Offsets went back: the topic was made anew or lost its end, or librdkafka reads some again. What
 * is in hand from there on is read again. What is below stays: it may be this log's. */
static void go_back(struct topic_partition *p, int64_t offset)
{
    while (p->held && p->held->prev->record.at.offset >= offset) /* the last one */
        unlink_held(p->held->prev);
    if (p->dropped >= offset)
        p->dropped = -1;
    if (p->hole_end > offset)
        p->hole_end = offset;
    p->committing = -1;
}

/* The offset was read; the next one is expected now. */
static void go_on(struct topic_partition *p, int64_t offset, int64_t next)
{
    if (offset < p->next)
        go_back(p, offset);
    p->next = next;
    if (p->expected == offset || p->expected < 0)
        p->expected = next;
}

static struct str move(char **to, struct str s)
{
    struct str moved = { *to, s.len };

    if (!s.ptr)
        return STR_NONE;
    memcpy(*to, s.ptr, s.len);
    *to += s.len;
    return moved;
}

/* A copy, since librdkafka keeps all that one fetch brought for as long as one record of it is
 * held: a few hundred that wait for long would hold hundreds of megabytes. */
struct record *topic_partition_take(struct topic_partition *p, const struct record *record)
{
    const struct headers *headers = &record->headers;
    struct held *h = mem_alloc(1, sizeof(*h));
    struct record *copy = &h->record;
    size_t topic_size = strlen(record->at.topic) + 1;

    go_on(p, record->at.offset, record->at.offset + 1);
    h->bytes = record->key.len + record->value.len + headers_bytes(headers);
    h->copy = mem_alloc(topic_size + h->bytes, 1);
    char *to = h->copy;
    copy->at = record->at;
    copy->at.topic = move(&to, (struct str){ record->at.topic, topic_size }).ptr;
    copy->timestamp_ms = record->timestamp_ms;
    copy->key = move(&to, record->key);
    copy->value = move(&to, record->value);
    headers_init(&copy->headers);
    for (size_t i = 0; i < headers->n; i++) {
        copy->headers.at[i].name = move(&to, headers->at[i].name);
        copy->headers.at[i].value = move(&to, headers->at[i].value);
    }
    copy->headers.n = headers->n;
    h->partition = p;
    h->number = p->n_taken++;
    DL_APPEND(p->held, h);
    p->n_held++;
    p->held_bytes += h->bytes;
    return copy;
}

int64_t topic_partition_removed(struct topic_partition *p, int64_t offset, int64_t first,
                                int64_t end)
{
    int64_t from = p->expected;

    if (offset > p->next)
        p->hole_end = offset;
    int64_t below = p->hole_end < first ? p->hole_end : first;
    if (first >= 0 || offset <= from)
        p->expected = offset;
    if (offset < p->next && end >= 0 && end < p->next)
        return -1;
    return from >= 0 && below > from ? below - from : 0;
}

void topic_partition_pass(struct topic_partition *p, int64_t offset)
{
    go_on(p, offset, offset);
}

int64_t topic_partition_offset(const struct topic_partition *p)
{
    int64_t offset = p->held ? p->held->record.at.offset : p->next;

    return p->dropped >= 0 && p->dropped < offset ? p->dropped : offset;
}

size_t topic_partition_span(const struct topic_partition *p)
{
    uint64_t number = p->held ? p->held->number : p->n_taken;

    return p->n_taken -
           (p->dropped >= 0 && p->dropped_number < number ? p->dropped_number : number);
}

size_t topic_partition_full(const struct topic_partition *p, size_t max_records, size_t max_bytes,
                            size_t max_span)
{
    size_t records = p->n_held * 100 / max_records, bytes = p->held_bytes * 100 / max_bytes;
    size_t span = topic_partition_span(p) * 100 / max_span;
    size_t most = records > bytes ? records : bytes;

    return most > span ? most : span;
}

void record_done(struct record *record)
{
    struct held *h = (struct held *)record;

    if (!h)
        return;
    if (h->partition)
        unlink_held(h);
    free(h->copy);
    free(h);
}

void record_drop(struct record *record)
{
    struct held *h = (struct held *)record;
    struct topic_partition *p = h ? h->partition : NULL;

    if (p && (p->dropped < 0 || h->record.at.offset < p->dropped)) {
        p->dropped = h->record.at.offset;
        p->dropped_number = h->number;
    }
    record_done(record);
}

bool record_is_of(const struct record *record, const struct topic_position *partitions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (partitions[i].partition == record->at.partition &&
            !strcmp(partitions[i].topic, record->at.topic))
            return true;
    return false;
}

#include "topic_span.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"

#define START_MS 5000

struct span {
    size_t part;
    int64_t at, end; /* offsets: at is the next */
};

struct topic_span {
    struct topic_client client; /* first: librdkafka's opaque */
    size_t n_parts, part;
    rd_kafka_topic_partition_list_t *partitions; /* of all parts, in their order */
    struct span *spans;                          /* one each */
    int64_t total, done;                         /* offsets */
    int n_left;                                  /* partitions of the part not read to the end */
    struct record record;                        /* the one that is out */
    rd_kafka_message_t *message;
};

/* Assigns what is left of the part, or of the next one that has something. */
static void part_assign(struct topic_span *s)
{
    rd_kafka_topic_partition_list_t *left = rd_kafka_topic_partition_list_new(16);

    for (;; s->part++) {
        for (int i = 0; i < s->partitions->cnt; i++)
            if (s->spans[i].part == s->part && s->spans[i].at < s->spans[i].end)
                rd_kafka_topic_partition_list_add(left, s->partitions->elems[i].topic,
                                                  s->partitions->elems[i].partition)
                    ->offset = s->spans[i].at;
        if (left->cnt || s->part == s->n_parts)
            break;
    }
    s->n_left = left->cnt;
    rd_kafka_assign(s->client.rk, left->cnt ? left : NULL);
    rd_kafka_topic_partition_list_destroy(left);
}

static void let_go(struct topic_span *s)
{
    if (s->message)
        rd_kafka_message_destroy(s->message);
    s->message = NULL;
}

/* True when the message is a record of the span, which is out then. */
static bool take(struct topic_span *s, rd_kafka_message_t *message)
{
    const rd_kafka_topic_partition_t *found = rd_kafka_topic_partition_list_find(
        s->partitions, rd_kafka_topic_name(message->rkt), message->partition);
    struct span *p = found ? &s->spans[found - s->partitions->elems] : NULL;

    if (!p || p->part != s->part || p->at >= p->end)
        return false;
    /* Where the next one is. An end below ours is that of a leader that is not up to date yet: what
     * is missing comes. */
    int64_t at = message->offset + !message->err;
    bool inside = !message->err && message->offset < p->end;
    at = at < p->end ? at : p->end;
    if (at > p->at) {
        s->done += at - p->at;
        p->at = at;
    }
    if (p->at == p->end) { /* must not be fetched on, or it would crowd out the others */
        topic_client_pause(&s->client, found->topic, found->partition, true);
        s->n_left--;
    }
    if (!inside)
        return false;
    s->message = message;
    topic_client_record(message, &s->record);
    return true;
}

const struct record *topic_span_next(struct topic_span *s, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    rd_kafka_message_t *message;

    let_go(s);
    for (;;) {
        if (s->part < s->n_parts && !s->n_left)
            part_assign(s);
        if (s->part == s->n_parts || !(message = topic_client_poll(&s->client, deadline)))
            return NULL;
        if (take(s, message))
            return &s->record;
        rd_kafka_message_destroy(message);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Where each partition begins and ends: later than at its beginning where the part has a time. One
 * without a later record is passed as a whole. */
static enum err ask_spans(struct topic_span *s, const struct topic_span_part *parts,
                          struct why *why)
{
    rd_kafka_topic_partition_list_t *times = rd_kafka_topic_partition_list_copy(s->partitions);
    struct topic_end *ends = mem_alloc((size_t)times->cnt, sizeof(*ends));
    enum err err = topic_client_ends(&s->client, s->partitions, START_MS, ends, why);

    bool timed = false;
    for (int i = 0; i < times->cnt; i++) {
        times->elems[i].offset = parts[s->spans[i].part].from_ms;
        timed |= times->elems[i].offset > 0;
    }
    if (!err && timed)
        err = topic_client_offsets_at_times(&s->client, times, START_MS, why);
    for (int i = 0; !err && i < times->cnt; i++) {
        struct span *p = &s->spans[i];
        int64_t at = times->elems[i].offset;
        p->at = ends[i].first;
        p->end = ends[i].end;
        if (parts[p->part].from_ms > 0 && at != RD_KAFKA_OFFSET_BEGINNING)
            p->at = at >= 0 && at < p->end ? at : p->end;
        s->total += p->end - p->at;
    }
    free(ends);
    rd_kafka_topic_partition_list_destroy(times);
    return err;
}

enum err topic_span_new(struct topic_span **ret, const struct kafka_options *kafka,
                        const struct topic_span_part *parts, size_t n, struct why *why)
{
    struct topic_span *s = mem_alloc(1, sizeof(*s));
    const char **topics = mem_alloc(n, sizeof(*topics));

    s->n_parts = n;
    s->partitions = rd_kafka_topic_partition_list_new(16);
    for (size_t i = 0; i < n; i++)
        topics[i] = parts[i].topic;
    enum err err = topic_client_open_groupless(&s->client, kafka, NULL, why);
    if (!err)
        err = topic_client_partitions(&s->client, topics, n, START_MS, s->partitions, why);
    free(topics);
    if (!err) {
        s->spans = mem_alloc((size_t)s->partitions->cnt, sizeof(*s->spans));
        for (int i = 0; i < s->partitions->cnt; i++)
            while (strcmp(parts[s->spans[i].part].topic, s->partitions->elems[i].topic) != 0)
                s->spans[i].part++;
        err = ask_spans(s, parts, why);
    }
    if (err) {
        topic_span_free(s);
        return err;
    }
    part_assign(s);
    *ret = s;
    return OK;
}

void topic_span_free(struct topic_span *s)
{
    if (!s)
        return;
    let_go(s);
    rd_kafka_topic_partition_list_destroy(s->partitions);
    topic_client_clear(&s->client);
    free(s->spans);
    free(s);
}

size_t topic_span_part(const struct topic_span *s)
{
    return s->part;
}

int64_t topic_span_total(const struct topic_span *s)
{
    return s->total;
}

int64_t topic_span_done(const struct topic_span *s)
{
    return s->done;
}

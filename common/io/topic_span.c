#include "topic_span.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"
#include "topic_ends.h"

#define START_MS 5000
#define SHORT_MS 10000 /* how long a partition may end before the end that it had */
#define ASK_MS   1000

struct span {
    size_t part;
    int32_t partition;
    int64_t start, at, end; /* offsets: at is the next */
    int64_t short_at;       /* the offset where it ended before its end, … */
    int64_t ask_due; /* … and when to ask whether it still does, monotonic ms; 0: it did not */
};

struct topic_span {
    struct topic_client client; /* first: librdkafka's opaque */
    char **topics;
    size_t n_parts, part;
    struct span *spans;
    size_t n_spans;
    struct record record; /* the one that is out */
    rd_kafka_message_t *message;
    rd_kafka_topic_partition_list_t *assigned;
};

static const topic_setting span_defaults[] = {
    { "fetch.wait.max.ms", "100" },
    { "queued.max.messages.kbytes", "16384" },
    { "fetch.message.max.bytes", "1048576" },
    { "receive.message.max.bytes", TOPIC_RECEIVE_MAX_BYTES },
    { NULL, NULL },
};

/* librdkafka wants a group for any assignment; nothing is ever committed or joined under it. */
static const topic_setting span_fixed[] = {
    { "group.id", "crcr-span" },
    { "enable.auto.commit", "false" },
    { "enable.auto.offset.store", "false" },
    { "auto.offset.reset", "earliest" }, /* retention took the beginning away meanwhile */
    { "enable.partition.eof", "true" },
    { "allow.auto.create.topics", "false" },
    { NULL, NULL },
};

/* ---- beginnings and ends --------------------------------------------------------------------- */

static void add_partitions(void *opaque, const char *topic, int partitions)
{
    struct topic_span *s = opaque;
    for (size_t i = 0; i < s->n_parts; i++) {
        if (strcmp(s->topics[i], topic) != 0)
            continue;
        s->spans = mem_resize(s->spans, s->n_spans + (size_t)partitions, sizeof(*s->spans));
        for (int32_t p = 0; p < partitions; p++)
            s->spans[s->n_spans++] = (struct span){ .part = i, .partition = p };
    }
}

static enum err all_found(const struct topic_span *s, struct why *why)
{
    for (size_t i = 0; i < s->n_parts; i++) {
        bool found = false;
        for (size_t k = 0; k < s->n_spans; k++)
            found = found || s->spans[k].part == i;
        if (!found)
            return why_set(why, ERR_STOP,
                           "missing in Kafka: %s; `crcrctl topics create` makes the topics",
                           s->topics[i]);
    }
    return OK;
}

static enum err ask_ends(struct topic_span *s, struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)s->n_spans);
    struct topic_end *ends = mem_alloc(s->n_spans, sizeof(*ends));
    for (size_t i = 0; i < s->n_spans; i++)
        rd_kafka_topic_partition_list_add(list, s->topics[s->spans[i].part], s->spans[i].partition);
    enum err err = topic_ends_ask(s->client.rk, list, START_MS, ends, why);
    for (size_t i = 0; !err && i < s->n_spans; i++) {
        s->spans[i].start = ends[i].first;
        s->spans[i].end = ends[i].end;
    }
    rd_kafka_topic_partition_list_destroy(list);
    free(ends);
    return err;
}

/* Begins later where a part has a time; a partition without a later record is passed as a whole. */
static enum err ask_starts(struct topic_span *s, const struct topic_span_part *parts,
                           struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)s->n_spans);
    enum err err = OK;
    for (size_t i = 0; i < s->n_spans; i++)
        if (parts[s->spans[i].part].from_ms > 0 && s->spans[i].start < s->spans[i].end)
            rd_kafka_topic_partition_list_add(list, s->topics[s->spans[i].part],
                                              s->spans[i].partition)
                ->offset = parts[s->spans[i].part].from_ms;
    if (list->cnt > 0)
        err = topic_ends_at_times(&s->client, list, START_MS, why);
    for (size_t i = 0; !err && i < s->n_spans; i++) {
        struct span *p = &s->spans[i];
        const rd_kafka_topic_partition_t *found =
            rd_kafka_topic_partition_list_find(list, s->topics[p->part], p->partition);
        if (found && found->offset != RD_KAFKA_OFFSET_BEGINNING)
            p->start = found->offset >= 0 && found->offset < p->end ? found->offset : p->end;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* ---- the part that is read ------------------------------------------------------------------- */

static bool part_left(const struct topic_span *s)
{
    for (size_t i = 0; i < s->n_spans; i++)
        if (s->spans[i].part == s->part && s->spans[i].at < s->spans[i].end)
            return true;
    return false;
}

/* Goes on to the next part that has something; assigns what there is of it. */
static void part_next(struct topic_span *s)
{
    while (s->part < s->n_parts && !part_left(s))
        s->part++;
    if (s->assigned)
        rd_kafka_topic_partition_list_destroy(s->assigned);
    s->assigned = rd_kafka_topic_partition_list_new((int)s->n_spans);
    for (size_t i = 0; i < s->n_spans; i++)
        if (s->spans[i].part == s->part && s->spans[i].at < s->spans[i].end)
            rd_kafka_topic_partition_list_add(s->assigned, s->topics[s->part],
                                              s->spans[i].partition)
                ->offset = s->spans[i].at;
    rd_kafka_assign(s->client.rk, s->assigned->cnt > 0 ? s->assigned : NULL);
}

static struct span *span_of(struct topic_span *s, const rd_kafka_message_t *message)
{
    const char *topic = rd_kafka_topic_name(message->rkt);
    for (size_t i = 0; i < s->n_spans; i++)
        if (s->spans[i].partition == message->partition && s->spans[i].part == s->part &&
            strcmp(s->topics[s->part], topic) == 0)
            return &s->spans[i];
    return NULL;
}

/* What is read to its end must not be fetched on, or it would crowd out the others. */
static void pass(struct topic_span *s, struct span *p, int64_t at)
{
    bool ended = p->at >= p->end;
    if (at > p->at)
        p->at = at < p->end ? at : p->end;
    if (ended || p->at < p->end)
        return;
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, s->topics[p->part], p->partition);
    rd_kafka_pause_partitions(s->client.rk, one);
    rd_kafka_topic_partition_list_destroy(one);
}

static void let_go(struct topic_span *s)
{
    if (s->message)
        rd_kafka_message_destroy(s->message);
    s->message = NULL;
}

/* An end below ours is that of a leader that is not up to date yet, and its records come; or they
 * are gone: the topic was made anew, an election was unclean. */
static void pass_or_wait(struct topic_span *s, struct span *p, int64_t end)
{
    pass(s, p, end);
    p->short_at = end;
    p->ask_due = end < p->end ? clock_mono_ms() + SHORT_MS : 0;
}

static bool end_now(const struct topic_span *s, const struct span *p, int64_t *end)
{
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    struct topic_end ends;

    rd_kafka_topic_partition_list_add(one, s->topics[p->part], p->partition);
    enum err err = topic_ends_ask(s->client.rk, one, ASK_MS, &ends, NULL);
    rd_kafka_topic_partition_list_destroy(one);
    *end = !err ? ends.end : -1;
    return !err;
}

/* Where records are gone, they are not waited for. A leader tells no end before it knows what was
 * acknowledged before it led (KIP-207), so that an end below ours is one. */
static void pass_what_is_gone(struct topic_span *s)
{
    int64_t now = clock_mono_ms(), end;

    for (size_t i = 0; i < s->n_spans; i++) {
        struct span *p = &s->spans[i];
        if (p->part != s->part || !p->ask_due || p->ask_due > now)
            continue;
        p->ask_due = now + SHORT_MS;
        if (end_now(s, p, &end) && end <= p->short_at)
            pass_or_wait(s, p, p->end);
    }
}

/* True when the message is a record of the span, which is out then. */
static bool take(struct topic_span *s, rd_kafka_message_t *message)
{
    struct span *p = message->rkt ? span_of(s, message) : NULL;
    if (message->err && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
        topic_client_trouble(&s->client, rd_kafka_message_errstr(message));
    if (p && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        pass_or_wait(s, p, message->offset);
    if (!p || message->err)
        return false;
    p->ask_due = 0;
    bool inside = message->offset < p->end;
    pass(s, p, message->offset + 1);
    if (!inside)
        return false;
    s->message = message;
    topic_client_record(message, &s->record);
    return true;
}

const struct record *topic_span_next(struct topic_span *s, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    let_go(s);
    for (;;) {
        if (s->part < s->n_parts && !part_left(s))
            part_next(s);
        if (s->part == s->n_parts)
            return NULL;
        int64_t wait = deadline - clock_mono_ms();
        rd_kafka_message_t *message =
            rd_kafka_consumer_poll(s->client.rk, wait > 0 ? (int)wait : 0);
        if (!message) {
            pass_what_is_gone(s);
            return NULL;
        }
        if (take(s, message))
            return &s->record;
        rd_kafka_message_destroy(message);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum err span_open(struct topic_span *s, const struct kafka_options *kafka,
                          const struct topic_span_part *parts, struct why *why)
{
    rd_kafka_conf_t *conf;
    enum err err = topic_client_configure(&s->client, kafka, span_defaults, span_fixed, &conf, why);
    if (!err)
        err = topic_client_open(&s->client, false, conf, why);
    if (err)
        return err;
    rd_kafka_poll_set_consumer(s->client.rk);
    err = topic_client_topics(&s->client, START_MS, add_partitions, s, why);
    if (!err)
        err = all_found(s, why);
    if (!err)
        err = ask_ends(s, why);
    if (!err)
        err = ask_starts(s, parts, why);
    if (err)
        return err;
    for (size_t i = 0; i < s->n_spans; i++)
        s->spans[i].at = s->spans[i].start;
    part_next(s);
    return OK;
}

enum err topic_span_new(struct topic_span **ret, const struct kafka_options *kafka,
                        const struct topic_span_part *parts, size_t n, struct why *why)
{
    struct topic_span *s = mem_alloc(1, sizeof(*s));
    topic_client_init(&s->client, kafka);
    s->topics = mem_alloc(n, sizeof(*s->topics));
    s->n_parts = n;
    for (size_t i = 0; i < n; i++)
        s->topics[i] = mem_dup(parts[i].topic);
    enum err err = span_open(s, kafka, parts, why);
    if (err) {
        topic_span_free(s);
        return err;
    }
    *ret = s;
    return OK;
}

void topic_span_free(struct topic_span *s)
{
    if (!s)
        return;
    let_go(s);
    if (s->assigned)
        rd_kafka_topic_partition_list_destroy(s->assigned);
    if (s->client.rk)
        rd_kafka_destroy_flags(s->client.rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    topic_client_clear(&s->client);
    for (size_t i = 0; i < s->n_parts; i++)
        free(s->topics[i]);
    free(s->topics);
    free(s->spans);
    free(s);
}

size_t topic_span_part(const struct topic_span *s)
{
    return s->part;
}

int64_t topic_span_total(const struct topic_span *s)
{
    int64_t total = 0;
    for (size_t i = 0; i < s->n_spans; i++)
        total += s->spans[i].end - s->spans[i].start;
    return total;
}

int64_t topic_span_done(const struct topic_span *s)
{
    int64_t done = 0;
    for (size_t i = 0; i < s->n_spans; i++)
        done += s->spans[i].at - s->spans[i].start;
    return done;
}

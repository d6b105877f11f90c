#include "topic_follower.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"

#define START_MS      5000
#define OFFSETS_MS    15000 /* a broker that has just come back has no leaders for some seconds */
#define AGAIN_MS      250
#define STALLED_MS    90000
#define ASK_EVERY_MS  30000
#define STALLED_TIMES 2 /* a record may come at the very moment */
#define ASK_MS        2000

struct topic_follower {
    struct topic_client client; /* first: librdkafka's opaque */
    struct record record;       /* the one that is out */
    rd_kafka_message_t *message;
    /* offset, once it is read: where it ended when its first record came, -1 before. opaque: not
     * NULL once that end was reached. */
    rd_kafka_topic_partition_list_t *partitions;
    int n_behind;           /* partitions whose end was not reached yet */
    int64_t skip_before_ms; /* where the brokers know no times, the least of the options; else 0 */
    int64_t moved_ms;       /* monotonic: when a record or an end came last */
    int64_t asked_ms;       /* monotonic: topic_follower_stalled */
    int times_behind;       /* in a row that there was more when it asked */
};

/* Where each partition begins, by the options; true when one does at a time. *least: of all. */
static bool set_offsets(struct topic_follower *f, const struct topic_follower_options *options,
                        int64_t *least)
{
    bool timed = false;
    size_t topic = 0;

    *least = INT64_MAX;
    for (int i = 0; i < f->partitions->cnt; i++) {
        rd_kafka_topic_partition_t *p = &f->partitions->elems[i];
        topic += strcmp(p->topic, options->topics[topic]) != 0;
        int64_t from = options->from ? options->from[topic] : FOLLOW_BEGINNING;
        p->offset = from == FOLLOW_BEGINNING ? RD_KAFKA_OFFSET_BEGINNING
                    : from == FOLLOW_END     ? RD_KAFKA_OFFSET_END
                                             : from;
        timed |= from > 0;
        *least = from < *least ? from : *least;
    }
    return timed;
}

/* From times to offsets; a partition without a later record starts at its end. */
static enum err find_offsets(struct topic_follower *f, const struct topic_follower_options *options,
                             struct why *why)
{
    int64_t deadline = clock_mono_ms() + OFFSETS_MS, least_ms;

    while (set_offsets(f, options, &least_ms)) {
        struct why reason;
        enum err err = topic_client_offsets_at_times(&f->client, f->partitions, START_MS, &reason);
        bool is_mock = f->partitions->elems[0].offset == RD_KAFKA_OFFSET_BEGINNING;
        f->skip_before_ms = is_mock ? least_ms : 0;
        if (!err)
            break;
        if (clock_mono_ms() >= deadline)
            return why_set(why, err, "%s; run this again in a moment", reason.text);
        topic_follower_next(f, AGAIN_MS); /* nothing is assigned yet: no record comes */
    }
    return OK;
}

static enum err start(struct topic_follower *f, const struct topic_follower_options *options,
                      struct why *why)
{
    if (f->partitions)
        rd_kafka_topic_partition_list_destroy(f->partitions);
    f->partitions = rd_kafka_topic_partition_list_new(16);
    enum err err = topic_client_partitions(&f->client, options->topics, options->n_topics, START_MS,
                                           f->partitions, why);
    if (!err)
        err = find_offsets(f, options, why);
    if (err)
        return err;
    f->n_behind = f->partitions->cnt;
    rd_kafka_resp_err_t code = rd_kafka_assign(f->client.rk, f->partitions);
    if (code)
        return why_set(why, ERR_STOP, "cannot read the topics: %s", rd_kafka_err2str(code));
    for (int i = 0; i < f->partitions->cnt; i++)
        f->partitions->elems[i].offset = -1;
    f->moved_ms = clock_mono_ms();
    return OK;
}

enum err topic_follower_try(struct topic_follower **f, const struct topic_follower_options *options,
                            struct why *why)
{
    if (*f)
        return start(*f, options, why);
    struct topic_follower *one = mem_alloc(1, sizeof(*one));
    enum err err = topic_client_open_groupless(&one->client, &options->kafka, NULL, why);
    if (err) {
        topic_follower_free(one);
        return err;
    }
    *f = one;
    return start(one, options, why);
}

enum err topic_follower_new(struct topic_follower **ret,
                            const struct topic_follower_options *options, struct why *why)
{
    struct topic_follower *f = NULL;
    enum err err = topic_follower_try(&f, options, why);

    if (err)
        topic_follower_free(f);
    else
        *ret = f;
    return err;
}

static void let_go(struct topic_follower *f)
{
    if (f->message)
        rd_kafka_message_destroy(f->message);
    f->message = NULL;
}

void topic_follower_free(struct topic_follower *f)
{
    if (!f)
        return;
    let_go(f);
    if (f->partitions)
        rd_kafka_topic_partition_list_destroy(f->partitions);
    topic_client_clear(&f->client);
    free(f);
}

/* A partition that grows all the time may never report its end, which librdkafka does where a fetch
 * brings nothing: the end that came with its first record is enough. */
static void note_end(struct topic_follower *f, const rd_kafka_message_t *message)
{
    const char *topic = rd_kafka_topic_name(message->rkt);
    rd_kafka_topic_partition_t *p =
        rd_kafka_topic_partition_list_find(f->partitions, topic, message->partition);
    bool at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    int64_t first;

    if (!p || p->opaque)
        return;
    if (!at_end && p->offset < 0)
        (void)rd_kafka_get_watermark_offsets(f->client.rk, topic, message->partition, &first,
                                             &p->offset);
    if (at_end || (p->offset >= 0 && message->offset + 1 >= p->offset)) {
        p->opaque = f;
        f->n_behind--;
    }
}

const struct record *topic_follower_next(struct topic_follower *f, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    rd_kafka_message_t *message;

    let_go(f);
    while ((message = topic_client_poll(&f->client, deadline))) {
        atomic_store(&f->client.unavailable, false);
        note_end(f, message);
        f->moved_ms = clock_mono_ms();
        f->times_behind = 0;
        if (!message->err) {
            topic_client_record(message, &f->record);
            if (f->record.timestamp_ms >= f->skip_before_ms) {
                f->message = message;
                return &f->record;
            }
        }
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

bool topic_follower_caught_up(const struct topic_follower *f)
{
    return f->n_behind == 0;
}

bool topic_follower_waits_for(const struct topic_follower *f, const struct topic_position *at)
{
    const rd_kafka_topic_partition_t *p =
        rd_kafka_topic_partition_list_find(f->partitions, at->topic, at->partition);

    return p && !p->opaque;
}

size_t topic_follower_behind(const struct topic_follower *f, struct topic_position *first)
{
    const rd_kafka_topic_partition_t *p = f->partitions->elems;

    if (!f->n_behind)
        return 0;
    while (p->opaque)
        p++;
    *first = (struct topic_position){ p->topic, p->partition, -1 };
    return (size_t)f->n_behind;
}

bool topic_follower_lost(struct topic_follower *f, struct why *why)
{
    if (!atomic_exchange(&f->client.unavailable, false)) /* reported once */
        return false;
    (void)topic_client_unreachable(&f->client, why);
    return true;
}

bool topic_follower_stalled(struct topic_follower *f, struct why *why)
{
    int64_t now = clock_mono_ms();
    bool stalled = false;

    if (now - f->moved_ms < STALLED_MS || now - f->asked_ms < ASK_EVERY_MS)
        return false;
    f->asked_ms = now;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(f->partitions);
    struct topic_end *ends = mem_alloc((size_t)list->cnt, sizeof(*ends));
    if (!topic_client_ends(&f->client, list, ASK_MS, ends, why) &&
        rd_kafka_position(f->client.rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR)
        for (int i = 0; i < list->cnt && !stalled; i++) {
            const rd_kafka_topic_partition_t *p = &list->elems[i];
            stalled = ends[i].end > (p->offset >= 0 ? p->offset : ends[i].first);
            if (stalled)
                (void)why_set(why, ERR_STOP, "%s [%d] has records that are not read", p->topic,
                              (int)p->partition);
        }
    free(ends);
    rd_kafka_topic_partition_list_destroy(list);
    f->times_behind = stalled ? f->times_behind + 1 : 0;
    return f->times_behind >= STALLED_TIMES;
}

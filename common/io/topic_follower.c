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

/* How far a partition is read; offsets. */
struct progress {
    size_t topic;
    int64_t from; /* as the options have it */
    int64_t at;   /* the next one; before the first record -1 */
    int64_t end;  /* at the start; without to_ends -1 until its first record comes */
};

struct topic_follower {
    struct topic_client client; /* first: librdkafka's opaque */
    struct record record;       /* the one that is out */
    rd_kafka_message_t *message;
    rd_kafka_topic_partition_list_t *partitions; /* of all topics, in their order */
    struct progress *progress;                   /* one each */
    int n_behind; /* assigned partitions whose end was not reached yet */
    bool to_ends;
    size_t n_topics;
    struct topic_follower_seen seen;
    /* Monotonic. */
    int64_t moved_ms;   /* when a record or an end came last */
    int64_t awaited_ms; /* when the last of the records came that were there at the start */
    int64_t asked_ms;   /* topic_follower_stalled */
    int times_behind;   /* how often in a row the brokers said that there is more */
};

static bool is_behind(const struct progress *p)
{
    return p->end < 0 || p->at < p->end;
}

static struct progress *progress_of(const struct topic_follower *f, const char *topic,
                                    int32_t partition)
{
    const rd_kafka_topic_partition_t *found =
        rd_kafka_topic_partition_list_find(f->partitions, topic, partition);

    return found ? &f->progress[found - f->partitions->elems] : NULL;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* From times to offsets. A partition without a later record starts at the end that was asked for
 * before: librdkafka would look for the end when it fetches, and miss what came meanwhile. */
static enum err offsets_of_times(struct topic_follower *f, struct why *why)
{
    struct topic_end *ends = mem_alloc((size_t)f->partitions->cnt, sizeof(*ends));
    enum err err = topic_client_ends(&f->client, f->partitions, START_MS, ends, why);

    if (err)
        (void)why_prefix(why, err, "cannot find offsets by time");
    else
        err = topic_client_offsets_at_times(&f->client, f->partitions, START_MS, why);
    for (int i = 0; !err && i < f->partitions->cnt; i++)
        if (f->progress[i].from > 0 && f->partitions->elems[i].offset == RD_KAFKA_OFFSET_END)
            f->partitions->elems[i].offset = ends[i].end;
    free(ends);
    return err;
}

static enum err find_offsets(struct topic_follower *f, bool once, struct why *why)
{
    int64_t deadline = clock_mono_ms() + (once ? 0 : OFFSETS_MS);

    for (;;) {
        bool timed = false;
        for (int i = 0; i < f->partitions->cnt; i++) {
            int64_t from = f->progress[i].from;
            timed |= from > 0;
            f->partitions->elems[i].offset = from ? from : RD_KAFKA_OFFSET_BEGINNING;
        }
        struct why reason;
        enum err err = timed ? offsets_of_times(f, &reason) : OK;
        if (!err)
            return OK;
        if (clock_mono_ms() >= deadline)
            return why_set(why, err, once ? "%s" : "%s; run this again in a moment", reason.text);
        topic_follower_next(f, AGAIN_MS); /* nothing is assigned yet: no record comes */
    }
}

/* Assigns the rest of this topic, or the next topic that has records. */
static void assign_topic(struct topic_follower *f)
{
    rd_kafka_topic_partition_list_t *left = rd_kafka_topic_partition_list_new(16);

    for (;; f->seen.topic++) {
        for (int i = 0; i < f->partitions->cnt; i++)
            if (f->progress[i].topic == f->seen.topic && is_behind(&f->progress[i]))
                rd_kafka_topic_partition_list_add(left, f->partitions->elems[i].topic,
                                                  f->partitions->elems[i].partition)
                    ->offset = f->progress[i].at;
        if (left->cnt || f->seen.topic == f->n_topics)
            break;
    }
    f->n_behind = left->cnt;
    rd_kafka_assign(f->client.rk, left->cnt ? left : NULL);
    rd_kafka_topic_partition_list_destroy(left);
}

/* Asks for the ends before the times: records that come in between lie behind the ends. A partition
 * without a record of that time or later is skipped. */
static enum err start_to_ends(struct topic_follower *f, struct why *why)
{
    struct topic_end *ends = mem_alloc((size_t)f->partitions->cnt, sizeof(*ends));
    enum err err = topic_client_ends(&f->client, f->partitions, START_MS, ends, why);

    if (!err)
        err = find_offsets(f, true, why);
    for (int i = 0; !err && i < f->partitions->cnt; i++) {
        struct progress *p = &f->progress[i];
        int64_t from = f->partitions->elems[i].offset;
        p->end = ends[i].end;
        p->at = from == RD_KAFKA_OFFSET_BEGINNING ? ends[i].first
                : from >= 0 && from < ends[i].end ? from
                                                  : ends[i].end;
        f->seen.total += p->end - p->at;
    }
    free(ends);
    if (!err)
        assign_topic(f);
    return err;
}

static enum err start(struct topic_follower *f, const struct topic_follower_options *options,
                      struct why *why)
{
    if (f->partitions)
        rd_kafka_topic_partition_list_destroy(f->partitions);
    f->partitions = rd_kafka_topic_partition_list_new(16);
    enum err err = topic_client_partitions(&f->client, options->topics, options->n_topics, START_MS,
                                           f->partitions, why);
    if (err)
        return err;
    f->n_behind = f->partitions->cnt;
    f->progress = mem_resize(f->progress, (size_t)f->n_behind, sizeof(*f->progress));
    for (int i = 0; i < f->n_behind; i++) {
        struct progress *p = &f->progress[i];
        *p = (struct progress){ .at = -1, .end = -1 };
        while (strcmp(options->topics[p->topic], f->partitions->elems[i].topic) != 0)
            p->topic++;
        p->from = options->from ? options->from[p->topic] : FOLLOW_BEGINNING;
    }
    if (f->to_ends)
        return start_to_ends(f, why);
    err = find_offsets(f, options->once, why);
    if (err)
        return err;
    f->moved_ms = f->awaited_ms = clock_mono_ms();
    rd_kafka_resp_err_t code = rd_kafka_assign(f->client.rk, f->partitions);
    return code ? why_set(why, ERR_STOP, "cannot read the topics: %s", rd_kafka_err2str(code)) : OK;
}

enum err topic_follower_start(struct topic_follower **f,
                              const struct topic_follower_options *options, struct why *why)
{
    enum err err = OK;

    if (!*f) {
        *f = mem_alloc(1, sizeof(**f));
        (*f)->to_ends = options->to_ends;
        (*f)->n_topics = options->n_topics;
        err = topic_client_open_groupless(&(*f)->client, &options->kafka, NULL, why);
        if (!err)
            rd_kafka_poll_set_consumer((*f)->client.rk);
    }
    if (!err)
        return start(*f, options, why);
    topic_follower_free(*f);
    *f = NULL;
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
    free(f->progress);
    free(f);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Notes a record, or the end of a partition. True: it is a record to hand out. */
static bool message_note(struct topic_follower *f, const rd_kafka_message_t *message)
{
    const char *topic = rd_kafka_topic_name(message->rkt);
    struct progress *p = progress_of(f, topic, message->partition);
    int64_t at = message->offset + !message->err, first;

    if (!p || (f->to_ends && !is_behind(p)))
        return false;
    bool behind = is_behind(p);
    bool wanted =
        !message->err && (p->from <= 0 || rd_kafka_message_timestamp(message, NULL) >= p->from);
    if (f->to_ends) {
        /* An end below ours: that leader is not up to date yet, the rest will come. */
        wanted = wanted && message->offset < p->end;
        at = at < p->end ? at : p->end;
        at = at > p->at ? at : p->at;
        f->seen.done += at - p->at;
    } else if (message->err || !behind) {
        p->end = at;
    } else if (p->end < 0) {
        /* A partition that grows all the time may never report its end, which librdkafka does where
         * a fetch brings nothing: the end that came with its first record is enough. */
        (void)rd_kafka_get_watermark_offsets(f->client.rk, topic, message->partition, &first,
                                             &p->end);
    }
    p->at = at;
    if (behind)
        f->awaited_ms = f->moved_ms;
    if (!behind || is_behind(p))
        return wanted;
    f->n_behind--;
    if (f->to_ends) /* must not be fetched on, or it would crowd out the others */
        topic_client_pause(&f->client, topic, message->partition, true);
    return wanted;
}

const struct record *topic_follower_next(struct topic_follower *f, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    rd_kafka_message_t *message;

    let_go(f);
    for (;;) {
        if (f->to_ends && f->seen.topic < f->n_topics && !f->n_behind)
            assign_topic(f);
        if (f->to_ends && f->seen.topic == f->n_topics)
            return NULL;
        if (!(message = topic_client_poll(&f->client, deadline)))
            return NULL;
        atomic_store(&f->client.unavailable, false);
        f->moved_ms = clock_mono_ms();
        f->times_behind = 0;
        if (message_note(f, message)) {
            topic_client_record(message, &f->record);
            f->message = message;
            return &f->record;
        }
        rd_kafka_message_destroy(message);
    }
}

struct topic_follower_seen topic_follower_seen(const struct topic_follower *f)
{
    return f->seen;
}

bool topic_follower_caught_up(const struct topic_follower *f)
{
    return f->n_behind == 0;
}

size_t topic_follower_behind(const struct topic_follower *f, int64_t silent_ms,
                             struct topic_position *first)
{
    size_t i = 0;

    if (!f->n_behind || clock_mono_ms() - f->awaited_ms <= silent_ms)
        return 0;
    while (!is_behind(&f->progress[i]))
        i++;
    const rd_kafka_topic_partition_t *p = &f->partitions->elems[i];
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
    struct topic_end *ends = mem_alloc((size_t)f->partitions->cnt, sizeof(*ends));
    if (!topic_client_ends(&f->client, f->partitions, ASK_MS, ends, why))
        for (int i = 0; i < f->partitions->cnt && !stalled; i++) {
            const rd_kafka_topic_partition_t *p = &f->partitions->elems[i];
            int64_t at = f->progress[i].at;
            stalled = ends[i].end > (at >= 0 ? at : ends[i].first);
            if (stalled)
                (void)why_set(why, ERR_STOP, "%s [%d] has records that are not read", p->topic,
                              (int)p->partition);
        }
    free(ends);
    f->times_behind = stalled ? f->times_behind + 1 : 0;
    return f->times_behind >= STALLED_TIMES;
}

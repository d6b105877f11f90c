#include "topic_reader.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "topic_nudge.h"
#include "topic_reader_inner.h"

#define MAX_IN_HAND       1000
#define MAX_IN_HAND_BYTES (16u << 20)
/* One slow record must not stop a partition, nor make a crash repeat it without bound: records done
 * above the lowest open one, as a multiple of max_in_hand. */
#define MAX_SPAN_FACTOR   16
#define COMMIT_EVERY_MS   1000
#define REVOKE_MS         20000
#define HOLDS_MS          500 /* the coordinator's clock is not ours */

static const topic_setting reader_defaults[] = {
    { "session.timeout.ms", "6000" },
    { "heartbeat.interval.ms", "1500" },
    { "queued.max.messages.kbytes", "4096" },
    { "queued.min.messages", "1000" }, /* in all; of small records 4 MB take 30 MB of memory */
    { "fetch.message.max.bytes", "262144" }, /* a partition; one larger record comes all the same */
    /* One fetch is under way at a time: partitions that were resumed wait for the end of one that
     * asked the others, which have nothing. librdkafka: 500. */
    { "fetch.wait.max.ms", "100" },
    { "receive.message.max.bytes", TOPIC_RECEIVE_MAX_BYTES },
    { NULL, NULL },
};

static const topic_setting reader_fixed[] = {
    { "enable.auto.commit", "false" },
    { "enable.auto.offset.store", "false" },
    { "auto.offset.reset", "earliest" },
    { "partition.assignment.strategy", "cooperative-sticky" },
    { "enable.partition.eof", "true" }, /* tells where an idle partition stands, for lag */
    { "allow.auto.create.topics", "false" },
    { NULL, NULL },
};

/* ---- partitions ----------------------------------------------------------------------------- */

struct topic_partition *topic_reader_find(const struct topic_reader *r, const char *topic,
                                          int32_t id)
{
    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        if (p->id == id && !strcmp(p->topic, topic))
            return p;
    }
    return NULL;
}

static void partition_add(struct topic_reader *r, const char *topic, int32_t id)
{
    if (topic_reader_find(r, topic, id))
        return;
    r->partitions =
        mem_resize(r->partitions, r->n_partitions + 1, sizeof(struct topic_partition *));
    r->partitions[r->n_partitions++] = topic_partition_new(topic, id);
}

static void partition_remove(struct topic_reader *r, const char *topic, int32_t id)
{
    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        if (p->id != id || strcmp(p->topic, topic))
            continue;
        r->n_paused -= p->paused;
        topic_partition_free(p);
        r->partitions[i] = r->partitions[--r->n_partitions];
        return;
    }
}

static void partition_pause(struct topic_reader *r, struct topic_partition *p, bool pause)
{
    rd_kafka_topic_partition_list_t *one;

    if (p->paused == pause)
        return;
    one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, p->topic, p->id);
    if (pause)
        rd_kafka_pause_partitions(r->client.rk, one);
    else
        rd_kafka_resume_partitions(r->client.rk, one);
    rd_kafka_topic_partition_list_destroy(one);
    p->paused = pause;
    p->moved_ms = clock_mono_ms();
    r->n_paused += pause ? 1 : (size_t)-1;
}

static bool is_full(const struct topic_reader *r, const struct topic_partition *p)
{
    size_t max = (size_t)r->max_in_hand;

    return p->n_held >= max || p->held_bytes >= r->max_in_hand_bytes ||
           watermark_span(&p->mark) >= r->max_span;
}

/* Half of what is_full wants: librdkafka throws away what it has fetched for a partition at each
 * pause, so pauses should be few. */
static bool has_room(const struct topic_reader *r, const struct topic_partition *p)
{
    size_t max = (size_t)r->max_in_hand;

    return p->n_held <= max / 2 && p->held_bytes <= r->max_in_hand_bytes / 2 &&
           watermark_span(&p->mark) <= r->max_span / 2;
}

static void nudge(struct topic_reader *r)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)r->n_partitions);

    for (size_t i = 0; i < r->n_partitions; i++)
        rd_kafka_topic_partition_list_add(list, r->partitions[i]->topic, r->partitions[i]->id);
    topic_nudge(r->client.rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    r->since_nudge = 0;
}

static void resume_those_with_room(struct topic_reader *r)
{
    size_t n_paused = r->n_paused;

    if (r->paused || n_paused == 0)
        return;
    for (size_t i = 0; i < r->n_partitions; i++)
        if (r->partitions[i]->paused && has_room(r, r->partitions[i]))
            partition_pause(r, r->partitions[i], false);
    if (r->n_paused < n_paused)
        nudge(r);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                      rd_kafka_topic_partition_list_t *list, void *opaque)
{
    (void)rk;
    topic_reader_commit_finish(opaque, err, list);
}

/* ---- assignment ----------------------------------------------------------------------------- */

static void assigned(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_error_t *error = rd_kafka_incremental_assign(r->client.rk, list);

    r->was_assigned = true;
    if (error) {
        topic_client_trouble(&r->client, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        return;
    }
    for (int i = 0; i < list->cnt; i++) {
        partition_add(r, list->elems[i].topic, list->elems[i].partition);
        if (r->paused)
            partition_pause(r, r->partitions[r->n_partitions - 1], true);
    }
    r->moved.taken += (uint64_t)list->cnt;
    atomic_store(&r->joining.settled, true);
}

static void report_revoked(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list,
                           bool lost)
{
    struct topic_position *positions;

    if (!r->revoked || list->cnt == 0)
        return;
    positions = mem_alloc((size_t)list->cnt, sizeof(*positions));
    for (int i = 0; i < list->cnt; i++)
        positions[i] =
            (struct topic_position){ list->elems[i].topic, list->elems[i].partition, -1 };
    r->revoking = true;
    r->revoked(r->opaque, positions, (size_t)list->cnt, lost ? 0 : clock_mono_ms() + REVOKE_MS);
    r->revoking = false;
    free(positions);
}

/* librdkafka remembers a pause beyond the assignment: a partition that comes back would never be
 * read again. */
static void resume_what_goes(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        struct topic_partition *p =
            topic_reader_find(r, list->elems[i].topic, list->elems[i].partition);
        if (p)
            partition_pause(r, p, false);
    }
}

static void revoked(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    struct why why;
    bool lost = rd_kafka_assignment_lost(r->client.rk);

    *(lost ? &r->moved.lost : &r->moved.given) += (uint64_t)list->cnt;
    report_revoked(r, list, lost);
    if (!lost && topic_reader_commit_wait(r, list, &why))
        topic_client_trouble(&r->client, why.text); /* others read again what was done: harmless */
    resume_what_goes(r, list);
    for (int i = 0; i < list->cnt; i++)
        partition_remove(r, list->elems[i].topic, list->elems[i].partition);
    rd_kafka_error_t *error = rd_kafka_incremental_unassign(r->client.rk, list);
    if (error) {
        topic_client_trouble(&r->client, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *list, void *opaque)
{
    (void)rk;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        assigned(opaque, list);
    else
        revoked(opaque, list);
}

/* ---- life ----------------------------------------------------------------------------------- */

static enum err subscribe(struct topic_reader *r, const struct topic_reader_options *options,
                          struct why *why)
{
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new((int)options->n_topics);

    for (size_t i = 0; i < options->n_topics; i++)
        rd_kafka_topic_partition_list_add(topics, options->topics[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = rd_kafka_subscribe(r->client.rk, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (!err)
        return OK;
    return why_set(why, ERR_STOP, "cannot subscribe as %s: %s", options->group,
                   rd_kafka_err2str(err));
}

static int64_t session_of(const rd_kafka_conf_t *conf)
{
    char text[32] = "";
    size_t size = sizeof(text);
    int64_t ms = 0;

    rd_kafka_conf_get(conf, "session.timeout.ms", text, &size);
    return str_to_i64(str_of(text), &ms) ? ms : 0;
}

static enum err reader_open(struct topic_reader *r, const struct topic_reader_options *options,
                            struct why *why)
{
    static const uint64_t one = 1; /* an eventfd takes 8 bytes */
    rd_kafka_conf_t *conf;

    enum err err = topic_client_configure(&r->client, &options->kafka, reader_defaults,
                                          reader_fixed, &conf, why);
    if (err)
        return err;
    rd_kafka_conf_set(conf, "group.id", options->group, NULL, 0);
    r->session_ms = session_of(conf);
    topic_joining_watch(&r->joining, conf);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    err = topic_client_open(&r->client, false, conf, why);
    if (err)
        return err;
    rd_kafka_poll_set_consumer(r->client.rk);
    r->queue = rd_kafka_queue_get_consumer(r->client.rk);
    if (options->wake)
        rd_kafka_queue_io_event_enable(r->queue, options->wake->fd, &one, sizeof(one));
    return subscribe(r, options, why);
}

enum err topic_reader_new(struct topic_reader **ret, const struct topic_reader_options *options,
                          struct why *why)
{
    struct topic_reader *r = mem_alloc(1, sizeof(*r));

    topic_client_init(&r->client, &options->kafka);
    r->max_in_hand = options->max_in_hand ? options->max_in_hand : MAX_IN_HAND;
    topic_reader_limit_span(r, 0);
    r->max_in_hand_bytes =
        options->max_in_hand_bytes ? options->max_in_hand_bytes : MAX_IN_HAND_BYTES;
    r->revoked = options->revoked;
    r->opaque = options->opaque;
    r->commit_due = clock_mono_ms() + COMMIT_EVERY_MS;
    enum err err = reader_open(r, options, why);
    if (err) {
        topic_reader_free(r);
        return err;
    }
    *ret = r;
    return OK;
}

struct topic_reader_share topic_reader_share(const struct topic_reader *r)
{
    struct topic_reader_share share = r->moved;

    share.now = r->n_partitions;
    return share;
}

void topic_reader_free(struct topic_reader *r)
{
    bool left = true;

    if (!r)
        return;
    if (r->queue) {
        rd_kafka_queue_io_event_enable(r->queue, -1, NULL, 0);
        left = topic_reader_leave(r);
        rd_kafka_queue_destroy(r->queue);
    }
    if (!left)
        return; /* it goes with the process, which is about to end */
    while (r->n_partitions)
        topic_partition_free(r->partitions[--r->n_partitions]);
    free(r->partitions);
    if (r->client.rk)
        rd_kafka_destroy_flags(r->client.rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    topic_client_clear(&r->client);
    free(r);
}

/* ---- records -------------------------------------------------------------------------------- */

static struct record *take(struct topic_reader *r, rd_kafka_message_t *message)
{
    struct topic_partition *p =
        message->rkt ? topic_reader_find(r, rd_kafka_topic_name(message->rkt), message->partition)
                     : NULL;

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && p) {
        watermark_pass(&p->mark, message->offset);
        p->moved_ms = clock_mono_ms();
    } else if (message->err) {
        topic_client_trouble(&r->client, rd_kafka_message_errstr(message));
    }
    if (message->err || !p) {
        rd_kafka_message_destroy(message);
        return NULL;
    }
    r->since_nudge += message->len + TOPIC_NUDGE_RECORD_BYTES;
    if (r->since_nudge >= TOPIC_NUDGE_BYTES)
        nudge(r);
    struct held *held = topic_partition_take(p, message);
    if (is_full(r, p))
        partition_pause(r, p, true);
    return &held->record;
}

struct record *topic_reader_next(struct topic_reader *r, int timeout_ms)
{
    int64_t now = clock_mono_ms();
    int64_t deadline = now + timeout_ms;

    if (r->revoking)
        return NULL;
    for (;; now = clock_mono_ms()) {
        resume_those_with_room(r);
        if (now >= r->commit_due) {
            topic_reader_commit_start(r);
            r->commit_due = now + COMMIT_EVERY_MS;
        }
        int64_t wait = deadline < r->commit_due ? deadline - now : r->commit_due - now;
        rd_kafka_message_t *message =
            rd_kafka_consumer_poll(r->client.rk, wait > 0 ? (int)wait : 0);
        struct record *record = message ? take(r, message) : NULL;
        if (record)
            return record;
        if (!message && clock_mono_ms() >= deadline)
            return NULL;
    }
}

void topic_reader_limit_span(struct topic_reader *r, size_t records)
{
    r->max_span = records ? records : (size_t)r->max_in_hand * MAX_SPAN_FACTOR;
}

void topic_reader_pause(struct topic_reader *r, bool pause)
{
    r->paused = pause;
    for (size_t i = 0; pause && i < r->n_partitions; i++)
        partition_pause(r, r->partitions[i], true);
    resume_those_with_room(r);
}

size_t topic_reader_in_hand(const struct topic_reader *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_partitions; i++)
        n += r->partitions[i]->n_held;
    return n;
}

bool topic_reader_holds(const struct topic_reader *r, int64_t for_ms)
{
    return clock_boot_ms() + for_ms + HOLDS_MS < atomic_load(&r->joining.known_ms) + r->session_ms;
}

int topic_reader_assigned(const struct topic_reader *r)
{
    return (int)r->n_partitions;
}

int64_t topic_reader_lag(const struct topic_reader *r)
{
    int64_t lag = r->n_partitions ? -1 : 0;

    for (size_t i = 0; i < r->n_partitions; i++) {
        const struct topic_partition *p = r->partitions[i];
        int64_t low, high, at = watermark_offset(&p->mark);
        if (at < 0 || rd_kafka_get_watermark_offsets(r->client.rk, p->topic, p->id, &low, &high) ||
            high < 0)
            continue;
        lag = (lag < 0 ? 0 : lag) + (high > at ? high - at : 0);
    }
    return lag;
}

int64_t topic_reader_oldest_ms(const struct topic_reader *r)
{
    int64_t oldest_ms = -1;

    for (size_t i = 0; i < r->n_partitions; i++) {
        const struct held *first = r->partitions[i]->held; /* they stand in the order of reading */
        if (first && (oldest_ms < 0 || first->record.timestamp_ms < oldest_ms))
            oldest_ms = first->record.timestamp_ms;
    }
    return oldest_ms;
}

bool topic_reader_fatal(struct topic_reader *r, struct why *why)
{
    return topic_client_fatal(&r->client, why);
}

size_t topic_reader_idle(const struct topic_reader *r, struct topic_idle *ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_partitions && n < max; i++) {
        const struct topic_partition *p = r->partitions[i];
        if (p->paused || p->n_held)
            continue;
        ret[n++] =
            (struct topic_idle){ .at = { p->topic, p->id, p->mark.next }, .since_ms = p->moved_ms };
    }
    return n;
}

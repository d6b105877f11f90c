#include "topic_reader.h"

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "topic_client.h"
#include "topic_partition.h"

#define MAX_IN_HAND       1000
#define MAX_IN_HAND_BYTES (16u << 20)
/* One slow record must not stop a partition, nor make a crash repeat it without bound: records done
 * above the lowest open one, as a multiple of max_in_hand. */
#define MAX_SPAN_FACTOR   16
#define COMMIT_EVERY_MS   1000
#define COMMIT_WAIT_MS    5000
#define COMMITTED_MS      2000
#define REVOKE_MS         20000
#define HOLDS_MS          500 /* the coordinator's clock is not ours */

/* https://kafka.apache.org/protocol#protocol_api_keys */
enum { JOIN_GROUP = 11, HEARTBEAT = 12, SYNC_GROUP = 14 };

/* What a group member asks its coordinator, since librdkafka does not say: how long its session
 * lasts at least, and whether it is between JoinGroup and SyncGroup. An offset commit sent then
 * waits behind the join on the coordinator's connection, is answered "illegal generation", and
 * librdkafka (2.0.2) takes that for a lost assignment: every record in hand would be done twice.
 * Written by librdkafka's threads. */
struct session {
    atomic_bool joining;   /* a JoinGroup was sent, the SyncGroup after it is not answered */
    atomic_bool joined;    /* a JoinGroup was answered, ever */
    atomic_llong asked_ms; /* clock_boot_ms: the last request that prolongs the session was sent */
    atomic_llong known_ms; /* … of those that were answered: the session began anew after that */
};

static bool prolongs(int16_t key)
{
    return key == JOIN_GROUP || key == HEARTBEAT || key == SYNC_GROUP;
}

static rd_kafka_resp_err_t on_sent(rd_kafka_t *rk, int fd, const char *broker, int32_t broker_id,
                                   int16_t key, int16_t version, int32_t correlation, size_t size,
                                   void *opaque)
{
    struct session *s = opaque;

    (void)rk, (void)fd, (void)broker, (void)broker_id, (void)version, (void)correlation, (void)size;
    if (key == JOIN_GROUP)
        atomic_store(&s->joining, true);
    if (prolongs(key))
        atomic_store(&s->asked_ms, clock_boot_ms());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_received(rd_kafka_t *rk, int fd, const char *broker,
                                       int32_t broker_id, int16_t key, int16_t version,
                                       int32_t correlation, size_t size, int64_t rtt,
                                       rd_kafka_resp_err_t err, void *opaque)
{
    struct session *s = opaque;

    (void)rk, (void)fd, (void)broker, (void)broker_id, (void)version, (void)correlation, (void)size;
    (void)rtt;
    if (key == JOIN_GROUP)
        atomic_store(&s->joined, true);
    if (key == SYNC_GROUP)
        atomic_store(&s->joining, false);
    if (prolongs(key) && !err) /* err: no answer came, but a time-out or a reset */
        atomic_store(&s->known_ms, atomic_load(&s->asked_ms));
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t session_watch(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque,
                                         char *text, size_t size)
{
    (void)conf, (void)text, (void)size;
    rd_kafka_interceptor_add_on_request_sent(rk, "session", on_sent, opaque);
    return rd_kafka_interceptor_add_on_response_received(rk, "session", on_received, opaque);
}

struct topic_reader {
    struct topic_client client; /* first: librdkafka's opaque */
    rd_kafka_queue_t *queue;    /* what consumer_poll reads; carries the wake-up */
    rd_kafka_queue_t *answers;  /* to commits */
    size_t n_committing;        /* not answered yet */
    struct topic_partition *partitions;
    struct topic_reader_state state; /* without lag and oldest_ms */
    size_t max_in_hand, max_in_hand_bytes, max_span;
    void (*revoked)(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms);
    void (*removed)(void *opaque, const struct topic_position *from, int64_t records);
    void *opaque;
    bool paused;        /* by topic_reader_pause */
    bool revoking;      /* inside revoked(): next hands out nothing */
    bool was_assigned;  /* something or nothing, ever */
    int64_t commit_due; /* monotonic ms */
    struct session session;
    int64_t session_ms;
};

static const topic_setting reader_defaults[] = {
    { "session.timeout.ms", "6000" },
    { "heartbeat.interval.ms", "1500" },
    { "queued.max.messages.kbytes", "4096" },
    { "queued.min.messages", "1000" }, /* in all; of small records 4 MB take 30 MB of memory */
    /* A partition. A response stays in memory until all of it is read: so small ones. */
    { "fetch.message.max.bytes", TOPIC_BATCH_BYTES }, /* one larger record comes all the same */
    { NULL, NULL },
};

/* ---- partitions ----------------------------------------------------------------------------- */

static void pause_partition(struct topic_reader *r, struct topic_partition *p, bool pause)
{
    if (p->paused == pause)
        return;
    topic_client_pause(&r->client, p->topic, p->id, pause);
    p->paused = pause;
    p->moved_ms = clock_mono_ms();
}

/* Full it is paused, half full or less it goes on: librdkafka drops what it has fetched for a
 * partition at each pause, so pauses should be few. */
static void pause_and_resume(struct topic_reader *r)
{
    struct topic_partition *p;

    LL_FOREACH2(r->partitions, p, list_next)
    {
        size_t full = topic_partition_full(p, r->max_in_hand, r->max_in_hand_bytes, r->max_span);
        if (r->paused || full >= 100)
            pause_partition(r, p, true);
        else if (full <= 50)
            pause_partition(r, p, false);
    }
}

/* ---- commits -------------------------------------------------------------------------------- */

/* What failed becomes due again. */
static void on_committed(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct topic_reader *r = opaque;

    (void)rk;
    r->n_committing--;
    if (err && err != RD_KAFKA_RESP_ERR__NO_OFFSET)
        topic_client_trouble(&r->client, rd_kafka_err2str(err));
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        struct topic_partition *p = topic_partition_find(r->partitions, t->topic, t->partition);
        if (p && (err || t->err) && p->committing == t->offset)
            p->committing = -1;
    }
}

/* Sends the commits that are due, and takes the answers to earlier ones. Nothing while the group is
 * being joined. */
static void commit(struct topic_reader *r)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    struct topic_partition *p;

    (void)rd_kafka_queue_poll_callback(r->answers, 0);
    LL_FOREACH2(r->partitions, p, list_next)
    {
        int64_t offset = topic_partition_offset(p);
        if (atomic_load(&r->session.joining) || offset < 0 || offset == p->committing)
            continue;
        rd_kafka_topic_partition_list_add(list, p->topic, p->id)->offset = offset;
        p->committing = offset;
    }
    if (list->cnt > 0) {
        r->n_committing++;
        rd_kafka_resp_err_t err =
            rd_kafka_commit_queue(r->client.rk, list, r->answers, on_committed, r);
        if (err)
            on_committed(r->client.rk, err, list, r);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- assignment ----------------------------------------------------------------------------- */

/* NULL: none. Takes it over. */
static bool trouble(struct topic_reader *r, rd_kafka_error_t *error)
{
    if (!error)
        return false;
    topic_client_trouble(&r->client, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return true;
}

static void assigned(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *known = rd_kafka_topic_partition_list_copy(list);
    r->was_assigned = true;
    /* librdkafka asks, too, but does not say when it begins elsewhere. Unanswered: negative. */
    if (list->cnt)
        (void)rd_kafka_committed(r->client.rk, known, COMMITTED_MS);
    int n = trouble(r, rd_kafka_incremental_assign(r->client.rk, list)) ? 0 : known->cnt;
    for (int i = 0; i < n; i++) {
        const rd_kafka_topic_partition_t *t = &known->elems[i];
        struct topic_partition *p = topic_partition_new(t->topic, t->partition, t->offset);
        p->moved_ms = clock_mono_ms();
        LL_PREPEND2(r->partitions, p, list_next);
    }
    pause_and_resume(r);
    r->state.now += (size_t)n;
    r->state.taken += (uint64_t)n;
    rd_kafka_topic_partition_list_destroy(known);
}

static void revoked(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    bool lost = rd_kafka_assignment_lost(r->client.rk);

    *(lost ? &r->state.lost : &r->state.given) += (uint64_t)list->cnt;
    if (r->revoked && list->cnt) {
        struct topic_position *positions = mem_alloc((size_t)list->cnt, sizeof(*positions));
        for (int i = 0; i < list->cnt; i++)
            positions[i] =
                (struct topic_position){ list->elems[i].topic, list->elems[i].partition, -1 };
        r->revoking = true;
        r->revoked(r->opaque, positions, (size_t)list->cnt, lost ? 0 : clock_mono_ms() + REVOKE_MS);
        r->revoking = false;
        free(positions);
    }
    if (!lost) { /* if it fails, others repeat what was done: harmless */
        int64_t left, deadline = clock_mono_ms() + COMMIT_WAIT_MS;
        commit(r);
        /* rd_kafka_commit would wait for ever when the broker is gone. */
        while (r->n_committing && (left = deadline - clock_mono_ms()) > 0)
            (void)rd_kafka_queue_poll_callback(r->answers, (int)left);
    }
    for (int i = 0; i < list->cnt; i++) {
        struct topic_partition *p =
            topic_partition_find(r->partitions, list->elems[i].topic, list->elems[i].partition);
        if (!p)
            continue;
        /* librdkafka remembers a pause beyond the assignment: a partition that comes back would
         * never be read again. */
        pause_partition(r, p, false);
        LL_DELETE2(r->partitions, p, list_next);
        topic_partition_free(p);
        r->state.now--;
    }
    (void)trouble(r, rd_kafka_incremental_unassign(r->client.rk, list));
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

/* ---- joining and leaving -------------------------------------------------------------------- */

enum err topic_reader_new(struct topic_reader **ret, const struct topic_reader_options *options,
                          struct why *why)
{
    struct topic_reader *r = mem_alloc(1, sizeof(*r));
    char session[32] = "";
    size_t size = sizeof(session);
    rd_kafka_conf_t *conf;

    r->max_in_hand = options->max_in_hand ? (size_t)options->max_in_hand : MAX_IN_HAND;
    r->max_in_hand_bytes =
        options->max_in_hand_bytes ? options->max_in_hand_bytes : MAX_IN_HAND_BYTES;
    topic_reader_limit_span(r, 0);
    r->revoked = options->revoked;
    r->removed = options->removed;
    r->opaque = options->opaque;
    r->commit_due = clock_mono_ms() + COMMIT_EVERY_MS;
    enum err err = topic_client_configure(&r->client, &options->kafka, reader_defaults,
                                          topic_consumer_fixed, &conf, why);
    if (!err) {
        rd_kafka_conf_set(conf, "group.id", options->group, NULL, 0);
        rd_kafka_conf_set(conf, "partition.assignment.strategy", "cooperative-sticky", NULL, 0);
        rd_kafka_conf_get(conf, "session.timeout.ms", session, &size);
        (void)str_to_i64(str_of(session), &r->session_ms);
        rd_kafka_conf_interceptor_add_on_new(conf, "session", session_watch, &r->session);
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        err = topic_client_open(&r->client, false, conf, why);
    }
    if (err) {
        topic_reader_free(r);
        return err;
    }
    rd_kafka_poll_set_consumer(r->client.rk);
    r->answers = rd_kafka_queue_new(r->client.rk);
    r->queue = rd_kafka_queue_get_consumer(r->client.rk);
    if (options->wake)
        topic_client_wake(r->queue, options->wake);
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new((int)options->n_topics);
    for (size_t i = 0; i < options->n_topics; i++)
        rd_kafka_topic_partition_list_add(topics, options->topics[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t code = rd_kafka_subscribe(r->client.rk, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (code) {
        topic_reader_free(r);
        return why_set(why, ERR_STOP, "cannot subscribe: %s", rd_kafka_err2str(code));
    }
    *ret = r;
    return OK;
}

#define JOINED_MS 3000
#define GIVEN_MS  2000 /* at once, unless others are waited for */
#define LEAVE_MS  12000
#define CLOSE_MS  5000
#define SERVE_MS  100

/* False when there was nothing to do. */
static bool serve(struct topic_reader *r)
{
    /* Not rd_kafka_queue_poll_callback: it aborts on records that were fetched already. */
    size_t before = r->state.now;
    rd_kafka_message_t *fetched = rd_kafka_consume_queue(r->queue, SERVE_MS);
    if (fetched)
        rd_kafka_message_destroy(fetched);
    return fetched || r->state.now != before;
}

/* librdkafka (2.0.2; its issue 4312) aborts when the handle is destroyed between the answer to
 * JoinGroup and the first assignment. */
static bool may_go(const struct topic_reader *r)
{
    return !atomic_load(&r->session.joined) || r->was_assigned;
}

/* Bounded, unlike rd_kafka_consumer_close. on_rebalance runs inside, with its own 20 s, after which
 * leaving gets its time anew: of 25 s that a daemon has to end, a rebalance that never comes while
 * others leave too must not take all. False: the handle may not be destroyed, which could abort the
 * process, or never end. */
static bool leave(struct topic_reader *r)
{
    int64_t deadline = clock_mono_ms() + JOINED_MS;

    while (!may_go(r) && clock_mono_ms() < deadline)
        (void)serve(r);
    /* Closed during an assignment, librdkafka (2.0.2; its issue 4527) may wait for ever for its
     * result. So all partitions are given back first. */
    rd_kafka_unsubscribe(r->client.rk);
    deadline = clock_mono_ms() + GIVEN_MS;
    while ((serve(r) || r->state.now) && clock_mono_ms() < deadline)
        ;
    if (trouble(r, rd_kafka_consumer_close_queue(r->client.rk, r->queue)))
        return may_go(r);
    deadline = clock_mono_ms() + (r->state.now ? LEAVE_MS : CLOSE_MS);
    while (!rd_kafka_consumer_closed(r->client.rk) && clock_mono_ms() < deadline) {
        size_t before = r->state.now;
        (void)serve(r);
        if (r->state.now != before)
            deadline = clock_mono_ms() + CLOSE_MS;
    }
    return may_go(r) && rd_kafka_consumer_closed(r->client.rk);
}

void topic_reader_free(struct topic_reader *r)
{
    struct topic_partition *p, *next;

    if (!r)
        return;
    if (r->queue) {
        rd_kafka_queue_io_event_enable(r->queue, -1, NULL, 0);
        bool left = leave(r);
        rd_kafka_queue_destroy(r->queue);
        rd_kafka_queue_destroy(r->answers);
        if (!left)
            return; /* it goes with the process, which is about to end */
    }
    LL_FOREACH_SAFE2(r->partitions, p, next, list_next)
    topic_partition_free(p);
    topic_client_clear(&r->client);
    free(r);
}

/* ---- records -------------------------------------------------------------------------------- */

/* NULL when the message is no record of ours. */
static struct record *message_take(struct topic_reader *r, const rd_kafka_message_t *message)
{
    struct topic_partition *p =
        topic_partition_find(r->partitions, rd_kafka_topic_name(message->rkt), message->partition);
    if (!p)
        return NULL;
    p->moved_ms = clock_mono_ms();
    int64_t from = p->expected, first = -1, end = -1; /* both stay so once a later fetch failed */
    if (message->offset != from)
        (void)rd_kafka_get_watermark_offsets(r->client.rk, p->topic, p->id, &first, &end);
    int64_t removed = topic_partition_removed(p, message->offset, first, end);
    if (removed && r->removed)
        r->removed(r->opaque, &(struct topic_position){ p->topic, p->id, from }, removed);
    if (message->err) { /* its end */
        topic_partition_pass(p, message->offset);
        return NULL;
    }
    struct record record;
    topic_client_record(message, &record);
    return topic_partition_take(p, &record);
}

struct record *topic_reader_next(struct topic_reader *r, int timeout_ms)
{
    int64_t now = clock_mono_ms(), deadline = now + timeout_ms;
    if (r->revoking)
        return NULL;
    for (;; now = clock_mono_ms()) {
        pause_and_resume(r);
        if (now >= r->commit_due) {
            commit(r);
            r->commit_due = now + COMMIT_EVERY_MS;
        }
        rd_kafka_message_t *message =
            topic_client_poll(&r->client, deadline < r->commit_due ? deadline : r->commit_due);
        struct record *record = message ? message_take(r, message) : NULL;
        if (message)
            rd_kafka_message_destroy(message);
        if (record)
            return record;
        if (!message && clock_mono_ms() >= deadline)
            return NULL;
    }
}

void topic_reader_limit_span(struct topic_reader *r, size_t records)
{
    r->max_span = records ? records : r->max_in_hand * MAX_SPAN_FACTOR;
}

void topic_reader_pause(struct topic_reader *r, bool pause)
{
    r->paused = pause;
    pause_and_resume(r);
}

/* ---- what there is to know ------------------------------------------------------------------ */

int topic_reader_assigned(const struct topic_reader *r)
{
    return (int)r->state.now;
}

struct topic_reader_state topic_reader_state(const struct topic_reader *r)
{
    struct topic_reader_state state = r->state;
    const struct topic_partition *p;

    state.lag = state.now ? -1 : 0;
    state.oldest_ms = -1;
    LL_FOREACH2(r->partitions, p, list_next)
    {
        int64_t low, high, at = topic_partition_offset(p);
        if (at >= 0 &&
            !rd_kafka_get_watermark_offsets(r->client.rk, p->topic, p->id, &low, &high) &&
            high >= 0)
            state.lag = (state.lag < 0 ? 0 : state.lag) + (high > at ? high - at : 0);
        if (p->held && (state.oldest_ms < 0 || p->held->record.timestamp_ms < state.oldest_ms))
            state.oldest_ms = p->held->record.timestamp_ms;
    }
    return state;
}

bool topic_reader_holds(const struct topic_reader *r, int64_t for_ms)
{
    return clock_boot_ms() + for_ms + HOLDS_MS < atomic_load(&r->session.known_ms) + r->session_ms;
}

size_t topic_reader_idle(const struct topic_reader *r, struct topic_idle *ret, size_t max)
{
    const struct topic_partition *p;
    size_t n = 0;

    LL_FOREACH2(r->partitions, p, list_next)
    {
        if (n < max && !p->paused && !p->n_held)
            ret[n++] =
                (struct topic_idle){ .at = { p->topic, p->id, p->next }, .since_ms = p->moved_ms };
    }
    return n;
}

bool topic_reader_fatal(struct topic_reader *r, struct why *why)
{
    return topic_client_fatal(&r->client, why);
}

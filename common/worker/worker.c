#include "worker.h"

#include <stdlib.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../io/http_client.h"
#include "postbox.h"

#define READ_MAX       256  /* records a turn */
#define POSTS_MAX      2000 /* on their way to the brokers: nothing more is read */
#define POSTS_BYTES    (8u << 20)
#define FULL_MS        2000 /* a short wait asks nobody; then the reader is paused, and asked */
#define TICK_MS        1000
#define DRAIN_TURN_MS  50
#define FLUSH_MS       5000
#define DRAIN_MS       20000 /* a daemon ends within 25 s */
/* A longer turn counts as a process pause. Kafka can assign a partition to another 4.5 s after the
 * pause began at the earliest: our last heartbeat (one every 1.5 s) began a session of 6 s. */
#define PAUSE_MS       3000
#define HEAR_MS        3000 /* after a pause: until Kafka had time to say what is another's by now */
#define SPARE_AFTER_MS 15000 /* a replica that gets no partition is a spare one, and ready */

/* A record in hand, shared by the parts of its work. */
struct shared_record {
    size_t parts; /* not ended */
    bool dropped; /* one was */
};

/* One part of the work of a record; most records have one.
 *
 *   OPEN ──work_done──▶ DONE ──all that was put is stored──▶ record_done
 *     └────work_drop──▶ DROPPED ──────"──────"───────▶ record_drop */
enum item_state { OPEN, DONE, DROPPED };

struct item {
    struct work work; /* first */
    struct worker *worker;
    struct shared_record *shared;
    struct item *prev, *next; /* in items, oldest first */
    enum item_state state;
    bool lost;    /* its partition is another's: drop() is asked each turn */
    size_t posts; /* not stored yet */
    void (*then)(void *opaque);
    void *then_opaque;
    struct item *then_prev, *then_next; /* in due_then */
};

struct worker {
    struct worker_options options;
    struct postbox *postbox;
    struct topic_reader *reader; /* NULL until worker_read, and after the drain */
    struct item *items, *due_then;
    size_t n, n_lost;
    size_t bytes; /* of all values in hand */
    char not_ready[256];
    int64_t started_ms;
    int64_t full_since_ms; /* monotonic; 0: there is room */
    int64_t turn_ms;       /* boot clock: this turn began */
    int64_t resumed_ms;    /* boot clock: the last pause of the process ended */
    int64_t leave_by_ms;   /* monotonic; 0: it stays */
    bool paused;
};

/* ---- one record -------------------------------------------------------------------------------
 */

static void item_end(struct item *item)
{
    struct worker *w = item->worker;
    struct shared_record *shared = item->shared;
    DL_DELETE(w->items, item);
    w->n--;
    w->n_lost -= item->lost;
    if (item->state == DONE)
        role_progress(w->options.role);
    else
        shared->dropped = true;
    if (--shared->parts == 0) {
        w->bytes -= item->work.record->value.len;
        (shared->dropped ? record_drop : record_done)(item->work.record);
        free(shared);
    }
    free(item);
}

static struct item *item_new(struct worker *w, struct record *record, struct shared_record *shared)
{
    struct item *item = mem_alloc(1, sizeof(*item));
    item->work.record = record;
    item->worker = w;
    item->shared = shared;
    shared->parts++;
    DL_APPEND(w->items, item);
    w->n++;
    return item;
}

struct work *work_share(struct work *work)
{
    struct item *item = (struct item *)work;
    return &item_new(item->worker, work->record, item->shared)->work;
}

bool work_is_lost(const struct work *work)
{
    return ((const struct item *)work)->lost;
}

/* Nothing of it is on its way any more. */
static void item_finished(struct item *item)
{
    if (item->state != OPEN) {
        item_end(item);
    } else if (item->then && !item->then_prev) {
        DL_APPEND2(item->worker->due_then, item, then_prev, then_next);
    }
}

static void post_stored(void *owner)
{
    struct item *item = owner;
    if (--item->posts == 0)
        item_finished(item);
}

void work_then(struct work *work, void (*then)(void *opaque), void *opaque)
{
    struct item *item = (struct item *)work;
    item->then = then;
    item->then_opaque = opaque;
    if (item->posts == 0)
        item_finished(item);
}

static void work_end(struct work *work, enum item_state state)
{
    struct item *item = (struct item *)work;
    if (item->then_prev)
        DL_DELETE2(item->worker->due_then, item, then_prev, then_next);
    item->then = NULL;
    item->then_prev = NULL;
    item->state = state;
    if (item->posts == 0)
        item_end(item);
}

void work_done(struct work *work)
{
    work_end(work, DONE);
}

void work_drop(struct work *work)
{
    work_end(work, DROPPED);
}

/* ---- what follows from it ---------------------------------------------------------------------
 */

void work_put(struct work *work, const struct post *post)
{
    struct item *item = (struct item *)work;
    item->posts++;
    postbox_put(item->worker->postbox, post, item);
}

void worker_put(struct worker *w, const struct post *post)
{
    postbox_put(w->postbox, post, NULL);
}

const struct worker_options *work_options(const struct work *work)
{
    return &((const struct item *)work)->worker->options;
}

/* ---- a turn -----------------------------------------------------------------------------------
 */

static void idle(struct worker *w, int ms)
{
    struct wake *wake = role_wake(w->options.role);
    if (w->due_then)
        ms = 0;
    if (w->options.http)
        http_client_poll(w->options.http, wake, ms);
    else if (ms > 0)
        wake_wait(wake, ms);
}

static void begin_turn(struct worker *w)
{
    int64_t now = clock_boot_ms();
    if (now - w->turn_ms > PAUSE_MS)
        w->resumed_ms = now;
    w->turn_ms = now;
    role_alive(w->options.role);
    wake_reset(role_wake(w->options.role));
    postbox_turn(w->postbox);
    while (w->due_then) {
        struct item *item = w->due_then;
        void (*then)(void *) = item->then;
        DL_DELETE2(w->due_then, item, then_prev, then_next);
        item->then_prev = NULL;
        item->then = NULL;
        then(item->then_opaque);
    }
    if (!w->n_lost)
        return;
    /* What was under way when its partition went ends, and nothing more is begun for it. */
    struct item *item, *next;
    DL_FOREACH_SAFE(w->items, item, next)
    {
        if (item->lost && item->state == OPEN)
            w->options.does->drop(w->options.opaque, &item->work);
    }
}

static bool is_full(struct worker *w)
{
    const struct worker_role *does = w->options.does;
    return postbox_pending(w->postbox) >= POSTS_MAX ||
           postbox_pending_bytes(w->postbox) >= POSTS_BYTES ||
           (does->full && does->full(w->options.opaque));
}

static void record_take(struct worker *w, struct record *record)
{
    struct item *item = item_new(w, record, mem_alloc(1, sizeof(struct shared_record)));
    w->bytes += record->value.len;
    w->options.does->take(w->options.opaque, &item->work);
}

/* True when there may be more. The reader must be asked now and then also while nothing is wanted:
 * only so does it learn which partitions go. */
static bool read_some(struct worker *w)
{
    int64_t now = clock_mono_ms();
    bool full = is_full(w);
    if (!full)
        w->full_since_ms = 0;
    else if (w->full_since_ms == 0)
        w->full_since_ms = now;
    bool long_full = full && now - w->full_since_ms >= FULL_MS;
    if (full && !long_full)
        return false;
    if (long_full != w->paused) /* it drops what librdkafka has fetched: for long waits */
        topic_reader_pause(w->reader, long_full);
    w->paused = long_full;
    for (int i = 0; i < READ_MAX && (i == 0 || !is_full(w)); i++) {
        struct record *record = topic_reader_next(w->reader, 0);
        if (!record)
            return false;
        record_take(w, record);
    }
    return !is_full(w);
}

static enum err turn(struct worker *w, struct why *why)
{
    struct role_ctx *role = w->options.role;
    begin_turn(w);
    bool more = w->reader && read_some(w);
    int ms = w->options.does->tick(w->options.opaque);
    if (w->reader)
        role_reads(role, w->reader);
    bool spare = clock_mono_ms() - w->started_ms > SPARE_AFTER_MS;
    bool reads = w->reader && (topic_reader_assigned(w->reader) > 0 || spare);
    role_ready(role, w->not_ready[0] ? w->not_ready
                     : reads         ? NULL
                                     : "no partition is assigned yet");
    if ((w->reader && topic_reader_fatal(w->reader, why)) ||
        topic_writer_fatal(postbox_writer(w->postbox), why))
        return ERR_STOP;
    idle(w, more ? 0 : ms < TICK_MS ? ms : TICK_MS);
    return OK;
}

/* ---- revoked partitions -----------------------------------------------------------------------
 */

/* partitions is NULL: all. */
static bool is_of(const struct item *item, const struct topic_position *partitions, size_t n)
{
    return !partitions || record_is_of(item->work.record, partitions, n);
}

/* True while something of these partitions is in hand. */
static bool drop_idle(struct worker *w, const struct topic_position *partitions, size_t n)
{
    struct item *item, *next;
    bool left = false;
    DL_FOREACH_SAFE(w->items, item, next)
    {
        if (item->state == OPEN && is_of(item, partitions, n))
            w->options.does->drop(w->options.opaque, &item->work);
    }
    DL_FOREACH(w->items, item)
    {
        left |= is_of(item, partitions, n);
    }
    return left;
}

static void mark_lost(struct worker *w, const struct topic_position *partitions, size_t n)
{
    struct item *item;
    DL_FOREACH(w->items, item)
    if (!item->lost && is_of(item, partitions, n)) {
        item->lost = true;
        w->n_lost++;
    }
}

/* partitions is NULL: the daemon stops, and goes on committing and leaving its partitions. */
static void drain(struct worker *w, const struct topic_position *partitions, size_t n,
                  int64_t deadline_ms)
{
    while (drop_idle(w, partitions, n) && clock_mono_ms() < deadline_ms) {
        struct record *unwanted = partitions || !w->reader ? NULL : topic_reader_next(w->reader, 0);
        if (unwanted)
            record_drop(unwanted);
        begin_turn(w);
        int ms = w->options.does->tick(w->options.opaque);
        idle(w, ms < DRAIN_TURN_MS ? ms : DRAIN_TURN_MS);
    }
}

/* Called by the reader. What is under way still at the deadline (0: the session timed out, and
 * another has the partition already) may end, and commits nothing. */
static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_ms)
{
    struct worker *w = opaque;
    if (deadline_ms == 0)
        mark_lost(w, partitions, n);
    if (w->leave_by_ms && w->leave_by_ms < deadline_ms)
        deadline_ms = w->leave_by_ms;
    drain(w, partitions, n, deadline_ms);
    mark_lost(w, partitions, n);
}

/* Called by the reader. */
static void removed(void *opaque, const struct topic_position *from, int64_t records)
{
    struct worker *w = opaque;
    struct str role = str_of(role_name(w->options.role)), topic = str_of(from->topic);
    if (records < 0) {
        log_warn("offsets_went_back", LOG_STR("role", role), LOG_STR("topic", topic),
                 LOG_INT("partition", from->partition), LOG_INT("from", from->offset));
        return;
    }
    log_error("records_lost", LOG_STR("role", role), LOG_STR("topic", topic),
              LOG_INT("partition", from->partition), LOG_INT("from", from->offset),
              LOG_INT("records", records));
    metrics_add(role_metrics(w->options.role), w->options.metrics.lost, METRIC_LABELS(role, topic),
                (double)records);
}

/* ---- life -------------------------------------------------------------------------------------
 */

enum err worker_new(struct worker **ret, const struct worker_options *options, struct why *why)
{
    const struct topic_writer_options writer = {
        .kafka = *options->kafka,
        .message_timeout_ms = options->message_timeout_ms,
        .lingers = options->lingers,
        .wake = role_wake(options->role),
    };
    const char *names[TOPIC_COUNT + 1];
    size_t n = 0;
    struct worker *w = mem_alloc(1, sizeof(*w));
    w->options = *options;
    w->started_ms = clock_mono_ms();
    w->turn_ms = clock_boot_ms();
    role_declare_dlq(options->role, options->metrics.dlq, str_of(role_name(options->role)));
    enum err err = postbox_new(&w->postbox, &writer, options->topics, role_metrics(options->role),
                               options->metrics.not_stored, post_stored, why);
    names[n++] = options->topics->name[TOPIC_DLQ];
    for (size_t i = 0; i < options->n_writes; i++)
        names[n++] = options->topics->name[options->writes[i]];
    for (size_t i = 0; i < n; i++) /* a counter begins at 0: an alert sees the first failure */
        metrics_add(role_metrics(options->role), options->metrics.not_stored,
                    METRIC_LABELS(str_of(names[i])), 0);
    for (size_t i = 0; i < options->n_reads; i++) {
        names[n] = options->topics->name[options->reads[i]];
        metrics_add(role_metrics(options->role), options->metrics.lost,
                    METRIC_LABELS(str_of(role_name(options->role)), str_of(names[n++])), 0);
    }
    if (!err)
        err = role_wait_topics(options->role, postbox_writer(w->postbox), names, n, why);
    if (err) {
        worker_free(w);
        return err;
    }
    *ret = w;
    return OK;
}

enum err worker_read(struct worker *w, struct why *why)
{
    const char *names[TOPIC_COUNT];
    const struct worker_options *o = &w->options;
    for (size_t i = 0; i < o->n_reads; i++)
        names[i] = o->topics->name[o->reads[i]];
    const struct topic_reader_options reader = {
        .kafka = *o->kafka,
        .group = o->topics->group[o->group],
        .topics = names,
        .n_topics = o->n_reads,
        .max_in_hand = o->max_in_hand,
        .max_in_hand_bytes = o->max_in_hand_bytes,
        .wake = role_wake(o->role),
        .revoked = revoked,
        .removed = removed,
        .opaque = w,
    };
    if (w->reader)
        return OK;
    w->started_ms = clock_mono_ms();
    return topic_reader_new(&w->reader, &reader, why);
}

enum err worker_run(struct worker *w, struct why *why)
{
    enum err err = OK;
    while (!err && !role_stopping(w->options.role))
        err = turn(w, why);
    /* While it is a member: once it has unsubscribed librdkafka (2.0.2) sends no heartbeat,
     * and after a session without one nothing can be committed. */
    w->leave_by_ms = clock_mono_ms() + DRAIN_MS;
    if (w->reader)
        topic_reader_pause(w->reader, true);
    drain(w, NULL, 0, w->leave_by_ms);
    topic_reader_free(w->reader); /* commits; what came meanwhile is given back: revoked() */
    w->reader = NULL;
    return err;
}

void worker_free(struct worker *w)
{
    struct item *item, *next;
    if (!w)
        return;
    topic_reader_free(w->reader);
    if (w->postbox && !postbox_flush(w->postbox, FLUSH_MS))
        log_warn("not_flushed", LOG_STR("role", str_of(role_name(w->options.role))),
                 LOG_INT("records", (int64_t)postbox_pending(w->postbox)));
    postbox_free(w->postbox);
    DL_FOREACH_SAFE(w->items, item, next)
    {
        if (item->state == OPEN && w->options.does->forget)
            w->options.does->forget(w->options.opaque, &item->work);
        item->state = DROPPED;
        item_end(item);
    }
    free(w);
}

void worker_not_ready(struct worker *w, const char *reason)
{
    str_copy(w->not_ready, sizeof(w->not_ready), str_of(reason));
}

bool worker_may_act(const struct worker *w, int64_t since_ms)
{
    int64_t now = clock_boot_ms();
    bool paused = now - w->turn_ms > PAUSE_MS || since_ms < w->resumed_ms;
    return w->reader && !paused && now - w->resumed_ms > HEAR_MS &&
           topic_reader_holds(w->reader, PAUSE_MS);
}

void worker_limit_span(struct worker *w, size_t records)
{
    topic_reader_limit_span(w->reader, records);
}

size_t worker_in_hand(const struct worker *w)
{
    return w->n;
}

size_t worker_in_hand_bytes(const struct worker *w)
{
    return w->bytes;
}

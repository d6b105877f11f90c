#include "outbox.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/model/burial.h"

#define AGAIN_MS  1000
#define LINGER_MS 1 /* a fan-out leaves as one batch */

#define TASK_KEY_MAX      1024
#define OUTCOME_KEY_MAX   512
#define OUTCOME_MAX_BYTES 8192

/* One record. It is in due while it is not with the writer. */
struct letter {
    struct letter *prev, *next;         /* in all */
    struct letter *due_prev, *due_next; /* in due */
    struct outbox *o;
    const char *topic;
    int place;
    struct str key, value;
    struct headers headers; /* their text is in text */
    char *text;
    size_t bytes;   /* of key, value and headers */
    int64_t due_ms; /* monotonic */
    bool forgotten;
    char *refusal; /* the broker's reason; then it is due, to be given back */
    outbox_stored_fn *done;
    outbox_refused_fn *refused;
    void *opaque;
};

struct outbox {
    struct topic_writer *writer;
    struct metrics *metrics;
    size_t not_stored;
    struct letter *all, *due;
    size_t n, bytes;
    bool failing; /* said so in the log already */
};

enum err outbox_new(struct outbox **ret, const struct kafka_options *kafka, struct wake *wake,
                    struct metrics *metrics, size_t not_stored, struct why *why)
{
    struct outbox *o = mem_alloc(1, sizeof(*o));
    struct topic_writer_options options = { .kafka = *kafka, .linger_ms = LINGER_MS, .wake = wake };
    enum err err = topic_writer_new(&o->writer, &options, why);
    if (err) {
        free(o);
        return err;
    }
    o->metrics = metrics;
    o->not_stored = not_stored;
    *ret = o;
    return OK;
}

void outbox_declare(struct outbox *o, const char *const *topics, size_t n)
{
    for (size_t i = 0; i < n; i++)
        metrics_add(o->metrics, o->not_stored, METRIC_LABELS(str_of(topics[i])), 0);
}

static void letter_free(struct letter *l)
{
    free(l->refusal);
    free(l->text);
    free(l);
}

void outbox_free(struct outbox *o)
{
    struct letter *l, *next;
    if (!o)
        return;
    topic_writer_free(o->writer);
    DL_FOREACH_SAFE(o->all, l, next)
    letter_free(l);
    free(o);
}

struct topic_writer *outbox_writer(struct outbox *o)
{
    return o->writer;
}

/* ---- one letter ---- */

static struct str keep(char **at, struct str s)
{
    struct str kept = { *at, s.len };
    if (!s.ptr)
        return STR_NONE;
    memcpy(*at, s.ptr, s.len);
    *at += s.len;
    return kept;
}

static struct letter *letter_new(const struct post *post)
{
    struct letter *l = mem_alloc(1, sizeof(*l));
    l->bytes = post->key.len + post->value.len + headers_bytes(post->headers);
    l->text = mem_alloc(1, l->bytes - (post->lasting ? post->value.len : 0) + 1);
    char *at = l->text;
    l->topic = post->topic;
    l->place = post->place;
    l->refused = post->refused;
    l->key = keep(&at, post->key);
    l->value = post->lasting ? post->value : keep(&at, post->value);
    headers_init(&l->headers);
    for (size_t i = 0; i < post->headers->n; i++) {
        struct str name = keep(&at, post->headers->at[i].name);
        headers_put_str(&l->headers, name, keep(&at, post->headers->at[i].value));
    }
    return l;
}

static void letter_end(struct letter *l)
{
    DL_DELETE(l->o->all, l);
    l->o->n--;
    l->o->bytes -= l->bytes;
    letter_free(l);
}

/* It may have come from inside outbox_put, whose caller does not expect to be called back. */
static void give_back_next(struct letter *l, const char *reason)
{
    l->refusal = mem_dup(reason);
    l->due_ms = 0;
    DL_PREPEND2(l->o->due, l, due_prev, due_next);
}

static void give_back(struct letter *l)
{
    l->refused(l->opaque, l->refusal);
    letter_end(l);
}

static void not_stored(struct letter *l, enum err err, const char *reason)
{
    struct outbox *o = l->o;
    if (l->forgotten) {
        letter_end(l);
        return;
    }
    if (err == ERR_REFUSE && l->refused) {
        give_back_next(l, reason);
        return;
    }
    l->due_ms = clock_mono_ms() + AGAIN_MS;
    DL_APPEND2(o->due, l, due_prev, due_next);
    metrics_add(o->metrics, o->not_stored, METRIC_LABELS(str_of(l->topic)), 1);
    if (!o->failing)
        log_error("record_not_stored", LOG_STR("topic", str_of(l->topic)),
                  LOG_STR("kind", str_of(err_name(err))), LOG_STR("error", str_of(reason)));
    o->failing = true;
}

static void written(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct letter *l = opaque;
    struct outbox *o = l->o;
    (void)at;
    if (err) {
        not_stored(l, err, reason);
        return;
    }
    if (o->failing)
        log_info("records_stored_again", LOG_STR("topic", str_of(l->topic)));
    o->failing = false;
    outbox_stored_fn *done = l->forgotten ? NULL : l->done;
    void *owner = l->opaque;
    letter_end(l);
    if (done)
        done(owner);
}

static void hand_over(struct letter *l)
{
    struct why why;
    enum err err = topic_writer_put_in(l->o->writer, l->topic, l->place, l->key, l->value,
                                       &l->headers, written, l, &why);
    if (err)
        not_stored(l, err, why.text);
}

/* ---- all of them ---- */

void outbox_put(struct outbox *o, const struct post *post, outbox_stored_fn *done, void *opaque)
{
    struct letter *l = letter_new(post);
    l->o = o;
    l->done = done;
    l->opaque = opaque;
    DL_APPEND(o->all, l);
    o->n++;
    o->bytes += l->bytes;
    hand_over(l);
}

void outbox_forget(struct outbox *o, const void *opaque)
{
    struct letter *l;
    DL_FOREACH(o->all, l)
    if (l->opaque == opaque)
        l->forgotten = true;
}

void outbox_turn(struct outbox *o)
{
    topic_writer_poll(o->writer, 0);
    int64_t now = clock_mono_ms();
    while (o->due && o->due->due_ms <= now) {
        struct letter *l = o->due;
        DL_DELETE2(o->due, l, due_prev, due_next);
        if (l->forgotten)
            letter_end(l);
        else if (l->refusal)
            give_back(l);
        else
            hand_over(l);
    }
}

size_t outbox_pending(const struct outbox *o)
{
    return o->n;
}

size_t outbox_pending_bytes(const struct outbox *o)
{
    return o->bytes;
}

void outbox_flush(struct outbox *o, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    while (o->n && clock_mono_ms() < deadline) {
        topic_writer_poll(o->writer, 50);
        outbox_turn(o);
    }
}

bool outbox_fatal(struct outbox *o, struct why *why)
{
    return topic_writer_fatal(o->writer, why);
}

void outbox_task(struct outbox *o, const struct topics *topics, const struct task *task,
                 struct str event_key, struct str value, outbox_stored_fn *done, void *opaque)
{
    struct buf CLEANUP(buf_clear) key;
    struct headers headers;
    buf_init(&key, TASK_KEY_MAX);
    task_key(&key, task->repo, event_key);
    headers_init(&headers);
    task_to_headers(task, &headers);
    struct post post = {
        .topic = topics->name[topic_of_tier(task->level)],
        .key = buf_str(&key),
        .value = value,
        .lasting = true,
        .headers = &headers,
    };
    outbox_put(o, &post, done, opaque);
}

void outbox_tell(struct outbox *o, const char *dispatches, const struct outcome *outcome,
                 outbox_stored_fn *done, void *opaque)
{
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) json;
    struct headers headers;
    buf_init(&key, OUTCOME_KEY_MAX);
    buf_init(&json, OUTCOME_MAX_BYTES);
    buf_printf(&key, "%s/%s", outcome->delivery_id, outcome->repo);
    outcome_to_json(outcome, &json);
    headers_init(&headers);
    headers_put(&headers, "delivery", str_of(outcome->delivery_id));
    headers_put(&headers, "repo", str_of(outcome->repo));
    struct post post = {
        .topic = dispatches,
        .key = buf_str(&key),
        .value = buf_str(&json),
        .headers = &headers,
    };
    outbox_put(o, &post, done, opaque);
}

void outbox_bury(struct outbox *o, const char *dlq, const struct record *record, const char *cls,
                 const char *error, outbox_stored_fn *done, void *opaque)
{
    struct burial b;
    burial_init(&b, record->key, record->value, &record->headers);
    burial_explain(&b, record->at.topic, cls, error, clock_wall_ms());
    struct post post = {
        .topic = dlq,
        .key = b.key,
        .value = b.value,
        .lasting = true,
        .headers = &b.headers,
    };
    outbox_put(o, &post, done, opaque);
}

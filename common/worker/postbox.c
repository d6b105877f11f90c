#include "postbox.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/mem.h"

#define AGAIN_MS 1000

/* One record. It is in due while it is not with the writer. */
struct letter {
    struct letter *prev, *next;         /* in all */
    struct letter *due_prev, *due_next; /* in due */
    struct postbox *o;
    enum topic topic;
    int slot;
    struct str key, value;
    struct headers headers; /* their text is in text */
    char *text;
    size_t bytes;   /* of key, value and headers */
    int64_t due_ms; /* monotonic */
    enum err err;
    char *reason; /* set: failed() is to be asked */
    post_failed_fn *failed;
    void *opaque, *owner;
    bool counts;
    struct post_count count;
};

struct postbox {
    struct topic_writer *writer;
    const struct topics *topics;
    struct metrics *metrics;
    size_t not_stored;
    postbox_reported_fn *reported;
    struct letter *all, *due;
    size_t n, bytes;
    bool failing; /* logged already */
    bool closing;
};

enum err postbox_new(struct postbox **ret, const struct topic_writer_options *writer,
                     const struct topics *topics, struct metrics *metrics, size_t not_stored,
                     postbox_reported_fn *reported, struct why *why)
{
    struct postbox *o = mem_alloc(1, sizeof(*o));
    enum err err = topic_writer_new(&o->writer, writer, why);
    if (err) {
        free(o);
        return err;
    }
    o->topics = topics;
    o->metrics = metrics;
    o->not_stored = not_stored;
    o->reported = reported;
    *ret = o;
    return OK;
}

static void letter_free(struct letter *l)
{
    DL_DELETE(l->o->all, l);
    l->o->n--;
    l->o->bytes -= l->bytes;
    free(l->reason);
    free(l->text);
    free(l);
}

void postbox_free(struct postbox *o)
{
    struct letter *l, *next;
    if (!o)
        return;
    o->closing = true;
    topic_writer_free(o->writer); /* reports what is still queued */
    DL_FOREACH_SAFE(o->all, l, next)
    letter_free(l);
    free(o);
}

struct topic_writer *postbox_writer(struct postbox *o)
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
    const struct headers *headers = post->headers;
    struct letter *l = mem_alloc(1, sizeof(*l));
    l->bytes = post->key.len + post->value.len + (headers ? headers_bytes(headers) : 0);
    l->text = mem_alloc(1, l->bytes - (post->lasting ? post->value.len : 0) + 1);
    char *at = l->text;
    l->topic = post->topic;
    l->slot = post->slot;
    l->failed = post->failed;
    l->opaque = post->opaque;
    l->key = keep(&at, post->key);
    l->value = post->lasting ? post->value : keep(&at, post->value);
    headers_init(&l->headers);
    for (size_t i = 0; headers && i < headers->n; i++) {
        struct str name = keep(&at, headers->at[i].name);
        headers_put_str(&l->headers, name, keep(&at, headers->at[i].value));
    }
    return l;
}

static void letter_end(struct letter *l)
{
    struct postbox *o = l->o;
    void *owner = l->owner;
    letter_free(l);
    if (owner && !o->closing)
        o->reported(owner);
}

static void not_stored(struct letter *l, enum err err, const char *reason)
{
    struct postbox *o = l->o;
    if (o->closing)
        return; /* postbox_free frees it */
    metrics_add(o->metrics, o->not_stored, METRIC_LABELS(str_of(o->topics->name[l->topic])), 1);
    if (!o->failing)
        log_error("record_not_stored", LOG_STR("topic", str_of(o->topics->name[l->topic])),
                  LOG_STR("kind", str_of(err_name(err))), LOG_STR("error", str_of(reason)));
    o->failing = true;
    if (l->failed) { /* not from here: it may be inside work_put, whose caller expects no call */
        l->err = err;
        l->reason = mem_dup(reason);
        l->due_ms = 0;
        DL_PREPEND2(o->due, l, due_prev, due_next);
        return;
    }
    l->due_ms = clock_mono_ms() + AGAIN_MS;
    DL_APPEND2(o->due, l, due_prev, due_next);
}

static void letter_written(void *opaque, enum err err, const struct topic_position *at,
                           const char *reason)
{
    struct letter *l = opaque;
    struct postbox *o = l->o;
    (void)at;
    if (err) {
        not_stored(l, err, reason);
        return;
    }
    if (o->failing)
        log_info("records_stored_again", LOG_STR("topic", str_of(o->topics->name[l->topic])));
    o->failing = false;
    if (l->counts) {
        const struct str labels[] = { l->count.a, l->count.b };
        metrics_add(o->metrics, l->count.family, labels, 1);
    }
    letter_end(l);
}

static void hand_over(struct letter *l)
{
    struct why why;
    const char *topic = l->o->topics->name[l->topic];
    const struct new_record record = { topic, l->key, l->value, &l->headers, l->slot };
    enum err err = topic_writer_lend(l->o->writer, &record, letter_written, l, &why);
    if (err)
        not_stored(l, err, why.text);
}

/* ---- all of them ---- */

void postbox_put(struct postbox *o, const struct post *post, void *owner)
{
    struct letter *l = letter_new(post);
    l->o = o;
    l->owner = owner;
    l->counts = !!post->count;
    if (post->count)
        l->count = *post->count;
    DL_APPEND(o->all, l);
    o->n++;
    o->bytes += l->bytes;
    hand_over(l);
}

void postbox_turn(struct postbox *o)
{
    topic_writer_poll(o->writer, 0);
    int64_t now = clock_mono_ms();
    while (o->due && o->due->due_ms <= now) {
        struct letter *l = o->due;
        DL_DELETE2(o->due, l, due_prev, due_next);
        if (!l->reason) {
            hand_over(l);
            continue;
        }
        bool taken = l->failed(l->opaque, l->err, l->reason);
        free(l->reason);
        l->reason = NULL;
        if (taken) {
            letter_end(l);
            continue;
        }
        l->due_ms = clock_mono_ms() + AGAIN_MS;
        DL_APPEND2(o->due, l, due_prev, due_next);
    }
}

size_t postbox_pending(const struct postbox *o)
{
    return o->n;
}

size_t postbox_pending_bytes(const struct postbox *o)
{
    return o->bytes;
}

bool postbox_flush(struct postbox *o, int timeout_ms)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    while (o->n && clock_mono_ms() < deadline) {
        topic_writer_poll(o->writer, 50);
        postbox_turn(o);
    }
    return o->n == 0;
}

#include "allowlist_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../io/topic_follower.h"
#include "allowlist_store.h"

#define TICK_MS 200 /* how long a stop may take to be seen */

struct allowlist_feed {
    struct allowlist_store *store;
    struct topic_follower *follower; /* the thread's own once it runs */
    pthread_t thread;
    bool started;
    atomic_bool stop, caught_up;
    pthread_mutex_t lock; /* guards what follows */
    size_t n_refused;
    struct why last_refused;
};

static void note_refusal(struct allowlist_feed *f, const struct why *why)
{
    pthread_mutex_lock(&f->lock);
    f->n_refused++;
    f->last_refused = *why;
    pthread_mutex_unlock(&f->lock);
}

/* caught_up is told only after the record was applied: then "no list" means that there is none. */
static void *follow(void *opaque)
{
    struct allowlist_feed *f = opaque;
    while (!atomic_load(&f->stop)) {
        const struct record *record = topic_follower_next(f->follower, TICK_MS);
        struct why why;
        if (record &&
            allowlist_store_apply(f->store, record->key, record->value, &record->headers, &why))
            note_refusal(f, &why);
        if (topic_follower_caught_up(f->follower))
            atomic_store(&f->caught_up, true);
    }
    return NULL;
}

enum err allowlist_feed_new(struct allowlist_feed **ret, const struct kafka_options *kafka,
                            const char *topic, struct why *why)
{
    struct allowlist_feed *f = mem_alloc(1, sizeof(*f));
    struct topic_follower_options options = {
        .kafka = *kafka, .topics = &topic, .n_topics = 1, .from = FOLLOW_BEGINNING
    };
    pthread_mutex_init(&f->lock, NULL);
    f->store = allowlist_store_new();
    enum err err = topic_follower_new(&f->follower, &options, why);
    if (!err && pthread_create(&f->thread, NULL, follow, f) != 0)
        err = why_set(why, ERR_STOP, "no thread for the allowlist");
    f->started = !err;
    if (err)
        allowlist_feed_free(f);
    else
        *ret = f;
    return err;
}

void allowlist_feed_free(struct allowlist_feed *f)
{
    if (!f)
        return;
    atomic_store(&f->stop, true);
    if (f->started)
        pthread_join(f->thread, NULL);
    topic_follower_free(f->follower);
    allowlist_store_free(f->store);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    return allowlist_store_get(f->store);
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    allowlist_store_release(f->store, v);
}

bool allowlist_feed_caught_up(struct allowlist_feed *f)
{
    return atomic_load(&f->caught_up);
}

size_t allowlist_feed_refused(struct allowlist_feed *f, struct why *last)
{
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_refused;
    if (n && last)
        *last = f->last_refused;
    pthread_mutex_unlock(&f->lock);
    return n;
}

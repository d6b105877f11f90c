#include "allowlist_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/fault.h"
#include "../base/mem.h"
#include "../base/wake.h"
#include "../io/topic_follower.h"
#include "allowlist_store.h"

#define TICK_MS  200 /* how long a stop may take to be seen */
#define AGAIN_MS 500 /* between tries while the brokers or the topic are not there */

struct allowlist_feed {
    struct allowlist_store *store;
    struct topic_follower_options options;
    const char *topic;
    struct topic_follower *follower; /* the thread's own */
    struct wake wake;                /* ends the wait between tries */
    pthread_t thread;
    bool started;
    atomic_bool stop, caught_up;
    allowlist_refused_fn *refused;
    atomic_llong *alive_ms;
};

/* Whether to go on. Each turn of a loop asks, which is the thread's sign of life. */
static bool goes_on(struct allowlist_feed *f)
{
    atomic_store(f->alive_ms, clock_mono_ms());
    return !atomic_load(&f->stop);
}

/* Brokers may come up after us, and the topic be made after that. */
static void open_follower(struct allowlist_feed *f)
{
    struct why why, reported = { "" };
    while (goes_on(f)) {
        if (!topic_follower_start(&f->follower, &f->options, &why))
            return;
        if (strcmp(why.text, reported.text) != 0)
            f->refused(&why);
        reported = why;
        wake_wait(&f->wake, AGAIN_MS);
    }
}

/* caught_up is reported only after the record was applied: then "no list" means that there is none.
 * Where nothing more would be read the thread ends: without its sign of life the daemon is started
 * again, and the list stays in force until then. Another follower in its place would put every
 * older list in force on its way. */
static void *follow(void *opaque)
{
    struct allowlist_feed *f = opaque;
    open_follower(f);
    while (goes_on(f)) {
        const struct record *record = topic_follower_next(f->follower, TICK_MS);
        struct why why;
        if (topic_follower_stalled(f->follower, &why)) {
            f->refused(&why);
            return NULL;
        }
        if (record &&
            allowlist_store_apply(f->store, record->key, record->value, &record->headers, &why))
            f->refused(&why);
        if (!topic_follower_caught_up(f->follower))
            continue;
        atomic_store(&f->caught_up, true);
        FAULT_POINT("allowlist.followed");
    }
    return NULL;
}

enum err allowlist_feed_new(struct allowlist_feed **ret, const struct kafka_options *kafka,
                            const char *topic, allowlist_refused_fn *refused,
                            atomic_llong *alive_ms, struct why *why)
{
    struct allowlist_feed *f = mem_alloc(1, sizeof(*f));
    f->refused = refused;
    f->alive_ms = alive_ms;
    f->store = allowlist_store_new();
    f->topic = topic;
    f->wake.fd = -1;
    f->options =
        (struct topic_follower_options){ .kafka = *kafka, .topics = &f->topic, .n_topics = 1 };
    enum err err = wake_init(&f->wake, why);
    if (!err && pthread_create(&f->thread, NULL, follow, f) != 0)
        err = why_set(why, ERR_STOP, "no thread for the allowlist");
    f->started = !err;
    if (err) {
        allowlist_feed_free(f);
        return err;
    }
    pthread_setname_np(f->thread, "allowlist");
    *ret = f;
    return OK;
}

void allowlist_feed_free(struct allowlist_feed *f)
{
    if (!f)
        return;
    atomic_store(&f->stop, true);
    if (f->started) {
        wake_up(&f->wake);
        pthread_join(f->thread, NULL);
    }
    wake_clear(&f->wake);
    topic_follower_free(f->follower);
    allowlist_store_free(f->store);
    free(f);
}

/* What takes the place of a version that is not known yet. */
static const struct allowlist_version none;

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    if (!atomic_load(&f->caught_up))
        return &none;
    return allowlist_store_get(f->store);
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    if (v != &none)
        allowlist_store_release(f->store, v);
}

const struct demotion *allowlist_version_demotion(const struct allowlist_version *v,
                                                  struct str repo)
{
    const struct allowlist_entry *entry = allowlist_find(v->list, repo);
    return entry && entry->level == 3 ? demotions_find(v->demotions, repo) : NULL;
}

size_t allowlist_feed_history(struct allowlist_feed *f, struct str repo,
                              struct level_change to[TENURE_CHANGES])
{
    return atomic_load(&f->caught_up) ? allowlist_store_history(f->store, repo, to) : 0;
}

bool allowlist_feed_caught_up(struct allowlist_feed *f)
{
    return atomic_load(&f->caught_up);
}

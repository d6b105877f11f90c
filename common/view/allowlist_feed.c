#include "allowlist_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/fault.h"
#include "../base/mem.h"
#include "../base/wake.h"
#include "../crypto/hmac.h"
#include "../io/topic_follower.h"

#define TICK_MS  200 /* how long a stop may take to be seen */
#define AGAIN_MS 500 /* between tries while the brokers or the topic are not there */

/* What is under one key of the topic. */
enum part { PART_LIST, PART_PROVIDERS, PART_DEMOTIONS, PARTS };

static const char *const keys[PARTS] = {
    [PART_LIST] = "allowlist",
    [PART_PROVIDERS] = "providers",
    [PART_DEMOTIONS] = DEMOTIONS_KEY,
};

/* A parsed record; versions share it when only another one changed. One of the three is set. */
struct file {
    size_t refs;
    struct allowlist *list;
    struct providers *providers;
    struct demotions *demotions;
};

struct version {
    struct allowlist_version shown; /* first: what readers hold is this */
    size_t refs;
    struct file *files[PARTS]; /* NULL: none yet */
};

struct allowlist_feed {
    pthread_mutex_t lock; /* guards current, every refs and past */
    struct version *current;
    struct tenure *past; /* of all lists that have come */
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

/* ---- versions ---- */

static void file_free(struct file *f)
{
    if (!f)
        return;
    allowlist_free(f->list);
    providers_free(f->providers);
    demotions_free(f->demotions);
    free(f);
}

static struct version *version_new(void)
{
    struct version *v = mem_alloc(1, sizeof(*v));
    v->refs = 1;
    return v;
}

/* Freeing a list of 10,000 takes a while: the lock is given up before. */
static void version_unref(struct allowlist_feed *f, struct version *v)
{
    struct file *files[PARTS] = { NULL };
    pthread_mutex_lock(&f->lock);
    bool last = --v->refs == 0;
    for (size_t i = 0; last && i < PARTS; i++)
        if (v->files[i] && --v->files[i]->refs == 0)
            files[i] = v->files[i];
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < PARTS; i++)
        file_free(files[i]);
    if (last)
        free(v);
}

/* sha, source and time are the allowlist's. The sha is the value's own, not the header's: whoever
 * fetches the file compares with it, and publishes it again over another one. */
static void describe(struct allowlist_version *v, enum part part, struct str value,
                     const struct headers *headers)
{
    int64_t fetched_ms = headers_get_i64(headers, "fetched_ms", 0);
    if (part == PART_PROVIDERS) {
        sha256_hex(value, v->providers_sha);
        v->providers_fetched_ms = fetched_ms;
    }
    if (part != PART_LIST)
        return;
    sha256_hex(value, v->sha);
    str_copy(v->source, sizeof(v->source),
             str_cut(headers_get(headers, "source"), sizeof(v->source) - 1));
    v->fetched_ms = fetched_ms;
}

/* Puts the file in force next to the other ones. */
static void swap_in(struct allowlist_feed *f, enum part part, struct file *file, struct str value,
                    const struct headers *headers)
{
    struct version *new = version_new();
    pthread_mutex_lock(&f->lock);
    struct version *old = f->current;
    new->shown = old->shown;
    for (size_t i = 0; i < PARTS; i++) {
        new->files[i] = i == part ? file : old->files[i];
        if (i != part && new->files[i])
            new->files[i]->refs++;
    }
    describe(&new->shown, part, value, headers);
    if (part == PART_LIST)
        tenure_add(f->past, file->list, new->shown.fetched_ms);
    new->shown.list = part == PART_LIST ? file->list : old->shown.list;
    new->shown.providers = part == PART_PROVIDERS ? file->providers : old->shown.providers;
    new->shown.demotions = part == PART_DEMOTIONS ? file->demotions : old->shown.demotions;
    f->current = new;
    pthread_mutex_unlock(&f->lock);
    version_unref(f, old);
}

static enum err file_parse(struct file *f, enum part part, struct str value, struct why *why)
{
    if (part == PART_LIST)
        return allowlist_parse(&f->list, "allowlist", value, why);
    if (part == PART_PROVIDERS)
        return providers_parse(&f->providers, "providers", value, why);
    return demotions_from_json(value, &f->demotions, why);
}

enum err allowlist_feed_apply(struct allowlist_feed *f, struct str key, struct str value,
                              const struct headers *headers, struct why *why)
{
    size_t part = 0;
    while (part < PARTS && !str_is(key, keys[part]))
        part++;
    if (part == PARTS)
        return OK;
    if (!value.ptr)
        return why_set(why, ERR_REFUSE, "the %s record has no value", keys[part]);
    struct file *file = mem_alloc(1, sizeof(*file));
    file->refs = 1;
    enum err err = file_parse(file, (enum part)part, value, why);
    if (err) {
        file_free(file);
        return err;
    }
    swap_in(f, (enum part)part, file, value, headers);
    return OK;
}

/* ---- the thread ---- */

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
        if (record && allowlist_feed_apply(f, record->key, record->value, &record->headers, &why))
            f->refused(&why);
        if (!topic_follower_caught_up(f->follower))
            continue;
        atomic_store(&f->caught_up, true);
        FAULT_POINT("allowlist.followed");
    }
    return NULL;
}

static enum err thread_start(struct allowlist_feed *f, const struct kafka_options *kafka,
                             struct why *why)
{
    f->options =
        (struct topic_follower_options){ .kafka = *kafka, .topics = &f->topic, .n_topics = 1 };
    enum err err = wake_init(&f->wake, why);
    if (!err && pthread_create(&f->thread, NULL, follow, f) != 0)
        err = why_set(why, ERR_STOP, "no thread for the allowlist");
    f->started = !err;
    if (f->started)
        pthread_setname_np(f->thread, "allowlist");
    return err;
}

enum err allowlist_feed_new(struct allowlist_feed **ret, const struct kafka_options *kafka,
                            const char *topic, allowlist_refused_fn *refused,
                            atomic_llong *alive_ms, struct why *why)
{
    struct allowlist_feed *f = mem_alloc(1, sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    f->current = version_new();
    f->past = tenure_new();
    f->refused = refused;
    f->alive_ms = alive_ms;
    f->topic = topic;
    f->wake.fd = -1;
    atomic_store(&f->caught_up, !kafka);
    enum err err = kafka ? thread_start(f, kafka, why) : OK;
    if (err) {
        allowlist_feed_free(f);
        return err;
    }
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
    version_unref(f, f->current);
    tenure_free(f->past);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* ---- readers ---- */

/* What takes the place of a version that is not known yet. */
static const struct allowlist_version none;

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    if (!atomic_load(&f->caught_up))
        return &none;
    pthread_mutex_lock(&f->lock);
    struct version *v = f->current;
    v->refs++;
    pthread_mutex_unlock(&f->lock);
    return &v->shown;
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    if (v && v != &none)
        version_unref(f, (struct version *)(uintptr_t)v);
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
    if (!atomic_load(&f->caught_up))
        return 0;
    pthread_mutex_lock(&f->lock);
    size_t n = tenure_history(f->past, repo, to);
    pthread_mutex_unlock(&f->lock);
    return n;
}

int64_t allowlist_feed_tenure_ms(struct allowlist_feed *f, struct str repo, int level,
                                 int64_t now_ms)
{
    if (!atomic_load(&f->caught_up))
        return -1;
    pthread_mutex_lock(&f->lock);
    int64_t ms = tenure_total_ms(f->past, repo, level, now_ms);
    pthread_mutex_unlock(&f->lock);
    return ms;
}

bool allowlist_feed_caught_up(struct allowlist_feed *f)
{
    return atomic_load(&f->caught_up);
}

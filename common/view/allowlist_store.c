#include "allowlist_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

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

struct allowlist_store {
    pthread_mutex_t lock; /* guards current, every refs and past */
    struct version *current;
    struct tenure *past; /* of all lists that have come */
};

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
static void version_unref(struct allowlist_store *s, struct version *v)
{
    struct file *files[PARTS] = { NULL };
    pthread_mutex_lock(&s->lock);
    bool last = --v->refs == 0;
    for (size_t i = 0; last && i < PARTS; i++)
        if (v->files[i] && --v->files[i]->refs == 0)
            files[i] = v->files[i];
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < PARTS; i++)
        file_free(files[i]);
    if (last)
        free(v);
}

struct allowlist_store *allowlist_store_new(void)
{
    struct allowlist_store *s = mem_alloc(1, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    s->current = version_new();
    s->past = tenure_new();
    return s;
}

void allowlist_store_free(struct allowlist_store *s)
{
    if (!s)
        return;
    version_unref(s, s->current);
    tenure_free(s->past);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* sha, source and time are the allowlist's. */
static void describe(struct allowlist_version *v, enum part part, const struct headers *headers)
{
    struct str sha = headers_get(headers, "sha");
    int64_t fetched_ms = headers_get_i64(headers, "fetched_ms", 0);
    if (part == PART_PROVIDERS) {
        str_copy(v->providers_sha, sizeof(v->providers_sha), sha);
        v->providers_fetched_ms = fetched_ms;
    }
    if (part != PART_LIST)
        return;
    str_copy(v->sha, sizeof(v->sha), sha);
    str_copy(v->source, sizeof(v->source),
             str_cut(headers_get(headers, "source"), sizeof(v->source) - 1));
    v->fetched_ms = fetched_ms;
}

/* Puts the file in force next to the other ones. */
static void swap_in(struct allowlist_store *s, enum part part, struct file *file,
                    const struct headers *headers)
{
    struct version *new = version_new();
    pthread_mutex_lock(&s->lock);
    struct version *old = s->current;
    new->shown = old->shown;
    for (size_t i = 0; i < PARTS; i++) {
        new->files[i] = i == part ? file : old->files[i];
        if (i != part && new->files[i])
            new->files[i]->refs++;
    }
    describe(&new->shown, part, headers);
    if (part == PART_LIST)
        tenure_add(s->past, file->list, new->shown.fetched_ms);
    new->shown.list = part == PART_LIST ? file->list : old->shown.list;
    new->shown.providers = part == PART_PROVIDERS ? file->providers : old->shown.providers;
    new->shown.demotions = part == PART_DEMOTIONS ? file->demotions : old->shown.demotions;
    s->current = new;
    pthread_mutex_unlock(&s->lock);
    version_unref(s, old);
}

static enum err file_parse(struct file *f, enum part part, struct str value, struct why *why)
{
    if (part == PART_LIST)
        return allowlist_parse(&f->list, "allowlist", value, why);
    if (part == PART_PROVIDERS)
        return providers_parse(&f->providers, "providers", value, why);
    return demotions_from_json(value, &f->demotions, why);
}

enum err allowlist_store_apply(struct allowlist_store *s, struct str key, struct str value,
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
    swap_in(s, (enum part)part, file, headers);
    return OK;
}

size_t allowlist_store_history(struct allowlist_store *s, struct str repo,
                               struct level_change to[TENURE_CHANGES])
{
    pthread_mutex_lock(&s->lock);
    size_t n = tenure_history(s->past, repo, to);
    pthread_mutex_unlock(&s->lock);
    return n;
}

const struct allowlist_version *allowlist_store_get(struct allowlist_store *s)
{
    pthread_mutex_lock(&s->lock);
    struct version *v = s->current;
    v->refs++;
    pthread_mutex_unlock(&s->lock);
    return &v->shown;
}

void allowlist_store_release(struct allowlist_store *s, const struct allowlist_version *v)
{
    if (v)
        version_unref(s, (struct version *)(uintptr_t)v);
}

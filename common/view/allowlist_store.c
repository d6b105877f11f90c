#include "allowlist_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

/* A parsed file; versions share it when only the other file changed. */
struct file {
    size_t refs;
    struct allowlist *list;
    struct providers *providers;
};

struct version {
    struct allowlist_version shown; /* first: what readers hold is this */
    size_t refs;
    struct file *list, *providers; /* NULL: none yet */
};

struct allowlist_store {
    pthread_mutex_t lock; /* guards current and every refs */
    struct version *current;
};

static void file_free(struct file *f)
{
    if (!f)
        return;
    allowlist_free(f->list);
    providers_free(f->providers);
    free(f);
}

static struct file *file_ref(struct file *f)
{
    if (f)
        f->refs++;
    return f;
}

static struct file *file_unref(struct file *f)
{
    return f && --f->refs == 0 ? f : NULL;
}

static void files_set(struct version *v, struct file *list, struct file *providers)
{
    v->list = list;
    v->providers = providers;
    v->shown.list = list ? list->list : NULL;
    v->shown.providers = providers ? providers->providers : NULL;
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
    struct file *list = NULL, *providers = NULL;
    pthread_mutex_lock(&s->lock);
    bool last = --v->refs == 0;
    if (last) {
        list = file_unref(v->list);
        providers = file_unref(v->providers);
    }
    pthread_mutex_unlock(&s->lock);
    file_free(list);
    file_free(providers);
    if (last)
        free(v);
}

struct allowlist_store *allowlist_store_new(void)
{
    struct allowlist_store *s = mem_alloc(1, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    s->current = version_new();
    return s;
}

void allowlist_store_free(struct allowlist_store *s)
{
    if (!s)
        return;
    version_unref(s, s->current);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void describe(struct allowlist_version *v, const struct headers *headers)
{
    str_copy(v->sha, sizeof(v->sha), headers_get(headers, "sha"));
    str_copy(v->source, sizeof(v->source),
             str_cut(headers_get(headers, "source"), sizeof(v->source) - 1));
    v->fetched_ms = headers_get_i64(headers, "fetched_ms", 0);
}

/* Puts the file in force next to the other one. sha, source and time are the allowlist's. */
static void swap_in(struct allowlist_store *s, struct file *file, const struct headers *headers)
{
    struct version *new = version_new();
    if (file->list)
        describe(&new->shown, headers);
    pthread_mutex_lock(&s->lock);
    struct version *old = s->current;
    if (!file->list) {
        new->shown = old->shown;
        files_set(new, file_ref(old->list), file);
        str_copy(new->shown.providers_sha, sizeof(new->shown.providers_sha),
                 headers_get(headers, "sha"));
    } else {
        memcpy(new->shown.providers_sha, old->shown.providers_sha,
               sizeof(new->shown.providers_sha));
        files_set(new, file, file_ref(old->providers));
    }
    s->current = new;
    pthread_mutex_unlock(&s->lock);
    version_unref(s, old);
}

enum err allowlist_store_apply(struct allowlist_store *s, struct str key, struct str value,
                               const struct headers *headers, struct why *why)
{
    bool is_list = str_is(key, "allowlist");
    if (!is_list && !str_is(key, "providers"))
        return OK;
    if (!value.ptr)
        return why_set(why, ERR_REFUSE, "the %.*s record has no value", STR_ARG(key));
    struct file *file = mem_alloc(1, sizeof(*file));
    file->refs = 1;
    enum err err = is_list ? allowlist_parse(&file->list, "allowlist", value, why)
                           : providers_parse(&file->providers, "providers", value, why);
    if (err) {
        file_free(file);
        return err;
    }
    swap_in(s, file, headers);
    return OK;
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

#include "table.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(message) abort() /* no memory: as mem.h says */
#include <uthash.h>

#include "mem.h"

struct table_entry {
    UT_hash_handle hh;
    struct str key; /* behind the value */
    max_align_t value[];
};

static struct table_entry *entry_of(const void *value)
{
    return (struct table_entry *)((char *)(uintptr_t)value - offsetof(struct table_entry, value));
}

void *table_get(const struct table *t, struct str key)
{
    struct table_entry *found;
    HASH_FIND(hh, t->entries, key.len ? key.ptr : "", key.len, found);
    return found ? found->value : NULL;
}

void *table_make(struct table *t, struct str key)
{
    void *found = table_get(t, key);
    if (found)
        return found;
    struct table_entry *e = mem_alloc(1, sizeof(*e) + t->size + key.len + 1);
    char *copy = (char *)e->value + t->size;
    if (key.len)
        memcpy(copy, key.ptr, key.len);
    e->key = (struct str){ copy, key.len };
    HASH_ADD_KEYPTR(hh, t->entries, e->key.ptr, e->key.len, e);
    return e->value;
}

struct str table_key(const void *value)
{
    return entry_of(value)->key;
}

void *table_next(const struct table *t, const void *value)
{
    struct table_entry *next = value ? entry_of(value)->hh.next : t->entries;
    return next ? next->value : NULL;
}

size_t table_count(const struct table *t)
{
    return HASH_COUNT(t->entries);
}

void table_remove(struct table *t, void *value)
{
    struct table_entry *e = entry_of(value);
    HASH_DEL(t->entries, e);
    free(e);
}

void table_clear(struct table *t)
{
    struct table_entry *one, *next;
    HASH_ITER(hh, t->entries, one, next)
    {
        HASH_DEL(t->entries, one);
        free(one);
    }
}

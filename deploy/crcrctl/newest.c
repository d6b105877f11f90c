#include "newest.h"

#include <stdlib.h>
#include <uthash.h>

#include "../../common/base/mem.h"

struct key {
    UT_hash_handle hh;
    uint64_t hash;
    uint64_t value; /* of the newest; 0: none seen */
};

struct newest {
    struct key *keys;
};

/* FNV-1a, 64 bits (RFC 9923); never 0. Nobody gains anything by a collision. */
static uint64_t hash_of(struct str s)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 1099511628211u;
    return hash ? hash : 1;
}

static struct key *find(const struct newest *n, struct str key)
{
    uint64_t hash = hash_of(key);
    struct key *found;

    HASH_FIND(hh, n->keys, &hash, sizeof(hash), found);
    return found;
}

struct newest *newest_new(void)
{
    return mem_alloc(1, sizeof(struct newest));
}

void newest_free(struct newest *n)
{
    struct key *k, *next;

    if (!n)
        return;
    HASH_ITER(hh, n->keys, k, next)
    {
        HASH_DEL(n->keys, k);
        free(k);
    }
    free(n);
}

void newest_want(struct newest *n, struct str key)
{
    if (find(n, key))
        return;
    struct key *k = mem_alloc(1, sizeof(*k));
    k->hash = hash_of(key);
    HASH_ADD(hh, n->keys, hash, sizeof(k->hash), k);
}

void newest_see(struct newest *n, struct str key, struct str value)
{
    struct key *k = find(n, key);

    if (k)
        k->value = hash_of(value);
}

bool newest_is(const struct newest *n, struct str key, struct str value)
{
    const struct key *k = find(n, key);

    return !k || !k->value || k->value == hash_of(value);
}

#include "newest.h"

/* The hash of its newest value; 0: none seen. */
struct key {
    uint64_t value;
};

/* FNV-1a, 64 bits (RFC 9923); never 0. Nobody gains anything by a collision. */
static uint64_t hash_of(struct str s)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 1099511628211u;
    return hash ? hash : 1;
}

void newest_init(struct newest *n)
{
    *n = (struct newest){ .keys.size = sizeof(struct key) };
}

void newest_clear(struct newest *n)
{
    table_clear(&n->keys);
}

void newest_want(struct newest *n, struct str key)
{
    (void)table_make(&n->keys, key);
}

void newest_see(struct newest *n, struct str key, struct str value)
{
    struct key *k = table_get(&n->keys, key);
    if (k)
        k->value = hash_of(value);
}

bool newest_is(const struct newest *n, struct str key, struct str value)
{
    const struct key *k = table_get(&n->keys, key);
    return !k || !k->value || k->value == hash_of(value);
}

/* Values of one size under keys of bytes. PURE. */
#ifndef CRCR_BASE_TABLE_H
#define CRCR_BASE_TABLE_H

#include "str.h"

struct table_entry;
struct table {
    size_t size; /* of a value; the caller sets it */
    struct table_entry *entries;
};

/* The value of the key; NULL: there is none. It stays where it is until it is removed. */
void *table_get(const struct table *t, struct str key);
/* The same, but where there is none one is made, all zero. */
void *table_make(struct table *t, struct str key);
/* The key of a value; terminated. */
struct str table_key(const void *value);
/* The value made after that one; NULL: the first. NULL after the last. */
void *table_next(const struct table *t, const void *value);
size_t table_count(const struct table *t);
/* Frees that value and its key. */
void table_remove(struct table *t, void *value);
void table_clear(struct table *t);

#endif

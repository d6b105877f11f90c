/* Which value of a key is its newest, for some keys of a topic that keeps only the newest: putting
 * an older one back there would take its place. Values are known by a hash. PURE. */
#ifndef CRCR_CTL_NEWEST_H
#define CRCR_CTL_NEWEST_H

#include "table.h"

struct newest {
    struct table keys;
};

void newest_init(struct newest *n);
void newest_clear(struct newest *n);
/* A key that counts. */
void newest_want(struct newest *n, struct str key);
/* A record of the topic, in its order. */
void newest_see(struct newest *n, struct str key, struct str value);
/* False when another value of the key was seen last. */
bool newest_is(const struct newest *n, struct str key, struct str value);

#endif

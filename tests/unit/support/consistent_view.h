/* An epoch, without which nothing is folded. */
#ifndef CRCR_TESTS_WHOLE_VIEW_H
#define CRCR_TESTS_WHOLE_VIEW_H

#include "common/io/redis.h"

/* As after a rebuild: 0 when Redis took it. */
static inline int consistent_view(struct redis *r)
{
    const struct redis_value *v;
    return !!redis_call(r, &v, REDIS_ARGS(STR_LIT("SET"), STR_LIT("epoch"), STR_LIT("1")), NULL);
}

#endif

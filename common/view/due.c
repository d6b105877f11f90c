#include "due.h"

#include "keys.h"

enum err due_set(struct redis *r, struct str member, int64_t at_ms, struct why *why)
{
    struct redis_batch batch = { .redis = r, .why = why };
    redis_batch_put(&batch, REDIS_ARGS(STR_LIT("ZREM"), STR_LIT(KEY_LEASES_DUE), member));
    if (at_ms > 0)
        redis_batch_put(&batch,
                        REDIS_ARGS(STR_LIT("ZADD"), STR_LIT(KEY_DUE), STR_NUMBER(at_ms), member));
    else
        redis_batch_put(&batch, REDIS_ARGS(STR_LIT("ZREM"), STR_LIT(KEY_DUE), member));
    while (redis_batch_next(&batch))
        ;
    return batch.err;
}

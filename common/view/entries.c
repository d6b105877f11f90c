#include "entries.h"

enum err view_fold_collect(struct redis *r, struct why *why)
{
    const struct redis_value *reply;
    return redis_collect(r, &reply, why);
}

enum err view_field_put(struct redis *r, struct str key, struct str field, struct str value,
                        const struct view_times *times, struct why *why)
{
    struct redis_batch batch = { .redis = r, .why = why };
    redis_batch_put(&batch, REDIS_ARGS(STR_LIT("HSET"), key, field, value));
    redis_batch_put(&batch, REDIS_ARGS(STR_LIT("EXPIRE"), key, STR_NUMBER(times->ttl_s)));
    while (redis_batch_next(&batch))
        ;
    return batch.err;
}

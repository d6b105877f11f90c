#include "labels.h"

#include "keys.h"

extern const char view_fold_labels_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_labels_lua };

enum err labels_fold_queue(struct redis *r, int64_t pr, int64_t updated_ms, int64_t received_ms,
                           struct str labels, struct str head_sha, const struct view_times *times,
                           struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    char numbers[4][STR_NUMBER_SIZE];
    buf_init(&key, VIEW_KEY_MAX);
    const struct str argv[] = { key_labels(&key, pr),
                                times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH),
                                str_number(numbers[0], updated_ms),
                                str_number(numbers[1], received_ms),
                                str_number(numbers[2], times->ttl_s),
                                labels,
                                head_sha,
                                times->fence ? str_number(numbers[3], times->fence) : STR_LIT("") };
    return redis_queue_script(r, &fold_script, 2, sizeof(argv) / sizeof(argv[0]), argv, why);
}

enum err labels_fold_collect(struct redis *r, struct why *why)
{
    const struct redis_value *reply;
    return redis_collect(r, &reply, why);
}

static enum err field_get(struct redis *r, int64_t pr, struct str field, struct buf *to,
                          struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    const struct redis_value *reply;
    buf_init(&key, VIEW_KEY_MAX);
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HGET"), key_labels(&key, pr), field), why);
    if (!err && reply->type == REDIS_STR)
        buf_put(to, reply->text);
    return err;
}

enum err labels_get(struct redis *r, int64_t pr, struct buf *to, struct why *why)
{
    return field_get(r, pr, STR_LIT("labels"), to, why);
}

enum err pr_head_get(struct redis *r, int64_t pr, char ret[SHA_MAX + 1], struct why *why)
{
    struct buf CLEANUP(buf_clear) sha;
    buf_init(&sha, SHA_MAX + 1);
    enum err err = field_get(r, pr, STR_LIT("head_sha"), &sha, why);
    if (!err)
        (void)str_copy(ret, SHA_MAX + 1, buf_str(&sha));
    return err;
}

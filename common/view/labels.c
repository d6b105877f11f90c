#include "labels.h"

#include "keys.h"

extern const char view_fold_labels_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_labels_lua };

enum err labels_fold_queue(struct redis *r, const struct pr_fact *fact,
                           const struct view_times *times, struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    char numbers[5][STR_NUMBER_SIZE];
    buf_init(&key, VIEW_KEY_MAX);
    const struct str argv[] = { key_labels(&key, fact->pr),
                                STR_LIT(KEY_PRS),
                                times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH),
                                str_number(numbers[0], fact->pr),
                                str_number(numbers[1], fact->updated_ms),
                                str_number(numbers[2], fact->received_ms),
                                str_number(numbers[3], times->ttl_s),
                                times->fence ? str_number(numbers[4], times->fence) : STR_LIT(""),
                                fact->labels,
                                fact->head_sha,
                                fact->title,
                                fact->author };
    return redis_queue_script(r, &fold_script, 3, sizeof(argv) / sizeof(argv[0]), argv, why);
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

enum err prs_by_activity(struct redis *r, size_t limit, struct view_index *ret, struct why *why)
{
    return index_newest(r, STR_LIT(KEY_PRS), limit, ret, why);
}

static void text_read(const struct redis_value *reply, struct pr_text *ret)
{
    char *const to[] = { ret->title, ret->author, ret->head_sha };
    const size_t sizes[] = { sizeof(ret->title), sizeof(ret->author), sizeof(ret->head_sha) };
    *ret = (struct pr_text){ "", "", "" };
    for (size_t i = 0; i < reply->n && i < sizeof(to) / sizeof(to[0]); i++)
        if (reply->items[i].type == REDIS_STR)
            (void)str_copy(to[i], sizes[i], reply->items[i].text);
}

/* Every reply is collected, also after one that failed. */
enum err pr_texts_get(struct redis *r, const struct view_index *prs, struct pr_text *ret,
                      struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    size_t queued = 0;
    enum err err = OK;
    buf_init(&key, VIEW_KEY_MAX);
    while (!err && queued < prs->n) {
        int64_t pr = 0;
        (void)str_to_i64(str_of(prs->at[queued].name), &pr);
        const struct str argv[] = { STR_LIT("HMGET"), key_labels(&key, pr), STR_LIT("title"),
                                    STR_LIT("author"), STR_LIT("head_sha") };
        err = redis_queue(r, sizeof(argv) / sizeof(argv[0]), argv, why);
        queued += !err;
    }
    for (size_t i = 0; i < queued; i++) {
        const struct redis_value *reply;
        enum err failed = redis_collect(r, &reply, why);
        if (failed)
            err = failed;
        else
            text_read(reply, &ret[i]);
    }
    return err;
}

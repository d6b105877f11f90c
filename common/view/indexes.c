#include "indexes.h"

#include <stdlib.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "keys.h"

void view_index_clear(struct view_index *index)
{
    for (size_t i = 0; i < index->n; i++)
        free(index->at[i].name);
    free(index->at);
    *index = (struct view_index){ NULL, 0 };
}

enum err index_newest(struct redis *r, struct str key, size_t limit, struct view_index *ret,
                      struct why *why)
{
    const struct redis_value *reply;
    char last[STR_NUMBER_SIZE];
    enum err err = redis_call(r, &reply,
                              REDIS_ARGS(STR_LIT("ZRANGE"), key, STR_LIT("0"),
                                         str_number(last, (int64_t)limit - 1), STR_LIT("REV"),
                                         STR_LIT("WITHSCORES")),
                              why);
    if (err)
        return err;
    struct view_index index = { mem_alloc(reply->n / 2 + 1, sizeof(*index.at)), 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2, index.n++) {
        index.at[index.n].name = str_dup(reply->items[i].text);
        if (!str_to_i64(reply->items[i + 1].text, &index.at[index.n].at_ms))
            index.at[index.n].at_ms = 0;
    }
    *ret = index;
    return OK;
}

enum err deliveries_of_pr(struct redis *r, int64_t pr, size_t limit, struct view_index *ret,
                          struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, VIEW_KEY_MAX);
    return index_newest(r, key_pr(&key, pr), limit, ret, why);
}

/* Every reply is collected, also after one that failed. */
enum err deliveries_by_prefix(struct redis *r, struct str prefix, int64_t now_ms, int64_t ttl_s,
                              size_t limit, struct view_index *ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) last;
    char first[DELIVERY_MAX + 2], most[STR_NUMBER_SIZE];
    int64_t today = now_ms / KEY_DAY_MS, days = ttl_s * 1000 / KEY_DAY_MS + 2, queued = 0;
    struct view_index index = { mem_alloc(limit + 1, sizeof(*index.at)), 0 };
    enum err err = OK;
    buf_init(&key, VIEW_KEY_MAX);
    buf_init(&last, sizeof(first) + 1);
    buf_putc(&last, '[');
    buf_put(&last, prefix);
    (void)str_copy(first, sizeof(first), buf_str(&last));
    buf_putc(&last, (char)0xff); /* behind all that begin so */
    for (; !err && queued < days; queued += !err) {
        const struct str argv[] = {
            STR_LIT("ZRANGE"), key_ids(&key, today - queued),
            str_of(first),     buf_str(&last),
            STR_LIT("BYLEX"),  STR_LIT("LIMIT"),
            STR_LIT("0"),      str_number(most, (int64_t)limit),
        };
        err = redis_queue(r, sizeof(argv) / sizeof(argv[0]), argv, why);
    }
    for (int64_t i = 0; i < queued; i++) {
        const struct redis_value *reply;
        enum err failed = redis_collect(r, &reply, why);
        for (size_t k = 0; !failed && k < reply->n && index.n < limit; k++)
            index.at[index.n++] = (struct view_index_entry){
                .name = str_dup(reply->items[k].text),
                .at_ms = (today - i) * KEY_DAY_MS,
            };
        err = failed ? failed : err;
    }
    if (err)
        view_index_clear(&index);
    else
        *ret = index;
    return err;
}

enum err repos_by_activity(struct redis *r, size_t limit, struct view_index *ret, struct why *why)
{
    return index_newest(r, STR_LIT(KEY_REPOS), limit, ret, why);
}

enum err allowlist_note_error(struct redis *r, char error[ALLOWLIST_NOTE_MAX], struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(
        r, &reply, REDIS_ARGS(STR_LIT("HGET"), STR_LIT(KEY_ALLOWLIST), STR_LIT("error")), why);
    if (err)
        return err;
    struct str text = reply->type == REDIS_STR ? reply->text : STR_LIT("");
    (void)str_copy(error, ALLOWLIST_NOTE_MAX, str_cut(text, ALLOWLIST_NOTE_MAX - 1));
    return OK;
}

enum err allowlist_note_fetched(struct redis *r, int64_t *ret, struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(
        r, &reply, REDIS_ARGS(STR_LIT("HGET"), STR_LIT(KEY_ALLOWLIST), STR_LIT("fetched_at")), why);
    if (err)
        return err;
    if (reply->type != REDIS_STR || clock_parse(reply->text, ret, NULL))
        *ret = 0;
    return OK;
}

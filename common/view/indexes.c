#include "indexes.h"

#include <stdio.h>
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

void view_index_add(struct view_index *index, struct str name, int64_t at_ms)
{
    index->at = mem_resize(index->at, index->n + 1, sizeof(*index->at));
    index->at[index->n++] = (struct view_index_entry){ str_dup(name), at_ms };
}

enum err index_read(struct redis *r, size_t argc, const struct str *argv, struct view_index *ret,
                    struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(r, &reply, argc, argv, why);
    if (err)
        return err;
    *ret = (struct view_index){ NULL, 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2) {
        int64_t at_ms = 0;
        (void)str_to_i64(reply->items[i + 1].text, &at_ms);
        view_index_add(ret, reply->items[i].text, at_ms);
    }
    return OK;
}

enum err index_newest(struct redis *r, struct str key, size_t limit, struct view_index *ret,
                      struct why *why)
{
    return index_read(r,
                      REDIS_ARGS(STR_LIT("ZRANGE"), key, STR_LIT("0"),
                                 STR_NUMBER((int64_t)limit - 1), STR_LIT("REV"),
                                 STR_LIT("WITHSCORES")),
                      ret, why);
}

enum err deliveries_of_pr(struct redis *r, int64_t pr, size_t limit, struct view_index *ret,
                          struct why *why)
{
    return index_newest(r, key_pr(NEW_KEY, pr), limit, ret, why);
}

enum err deliveries_by_prefix(struct redis *r, struct str prefix, int64_t now_ms, int64_t ttl_s,
                              size_t limit, struct view_index *ret, struct why *why)
{
    char first[DELIVERY_MAX + 2], last[sizeof(first) + 1];
    int64_t today = now_ms / KEY_DAY_MS, days = ttl_s * 1000 / KEY_DAY_MS + 2;
    struct view_index index = { NULL, 0 };
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *reply;
    snprintf(first, sizeof(first), "[%.*s", STR_ARG(prefix));
    snprintf(last, sizeof(last), "%s\xff", first); /* behind all that begin so */
    for (int64_t i = 0; i < days; i++)
        redis_batch_put(&batch,
                        REDIS_ARGS(STR_LIT("ZRANGE"), key_ids(NEW_KEY, today - i), str_of(first),
                                   str_of(last), STR_LIT("BYLEX"), STR_LIT("LIMIT"), STR_LIT("0"),
                                   STR_NUMBER((int64_t)limit)));
    for (; (reply = redis_batch_next(&batch)); today--)
        for (size_t k = 0; k < reply->n && index.n < limit; k++)
            view_index_add(&index, reply->items[k].text, today * KEY_DAY_MS);
    if (batch.err)
        view_index_clear(&index);
    else
        *ret = index;
    return batch.err;
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

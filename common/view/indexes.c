#include "indexes.h"

#include <stdlib.h>

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

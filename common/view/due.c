#include "due.h"

#include <stdlib.h>

#include "../base/mem.h"
#include "entries.h"
#include "keys.h"

extern const char view_due_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script take_script = { .source = view_due_lua };

void due_list_clear(struct due_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct due_list){ .at = NULL };
}

enum err due_set(struct redis *r, struct str member, int64_t at_ms, struct why *why)
{
    const struct redis_value *v;
    if (at_ms <= 0)
        return redis_call(r, &v, REDIS_ARGS(STR_LIT("ZREM"), STR_LIT(KEY_DUE), member), why);
    return redis_call(
        r, &v, REDIS_ARGS(STR_LIT("ZADD"), STR_LIT(KEY_DUE), STR_NUMBER(at_ms), member), why);
}

enum err due_take(struct redis *r, const char *key, int64_t now_ms, size_t most,
                  struct due_list *ret, int64_t *past, struct why *why)
{
    const struct redis_value *v;
    struct due_list list = { .lease_end_ms = (now_ms + DUE_LEASE_MS) | 1 };
    const struct str argv[] = {
        str_of(key),
        STR_LIT(KEY_EPOCH),
        STR_NUMBER(now_ms),
        STR_NUMBER(list.lease_end_ms),
        STR_NUMBER((int64_t)most),
    };
    enum err err =
        redis_call_script(r, &take_script, 2, sizeof(argv) / sizeof(argv[0]), argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n < 1 || v->items[0].type != REDIS_INT)
        return why_set(why, ERR_REFUSE, "due.lua gave an answer that is not its own");
    list.at = mem_alloc(v->n, sizeof(*list.at));
    for (size_t i = 1; i < v->n; i++)
        list.at[list.n++] = str_dup(v->items[i].text);
    *past = v->items[0].integer;
    *ret = list;
    return OK;
}

enum err due_remove(struct redis *r, const char *key, const char *member, int64_t lease_end_ms,
                    struct why *why)
{
    return view_member_remove(r, str_of(key), str_of(member), lease_end_ms, why);
}

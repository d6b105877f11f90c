#include "due.h"

#include "entries.h"
#include "keys.h"

extern const char view_due_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script take_script = { .source = view_due_lua };

enum err due_set(struct redis *r, struct str member, int64_t at_ms, struct why *why)
{
    const struct redis_value *v;
    if (at_ms <= 0)
        return redis_call(r, &v, REDIS_ARGS(STR_LIT("ZREM"), STR_LIT(KEY_DUE), member), why);
    return redis_call(
        r, &v, REDIS_ARGS(STR_LIT("ZADD"), STR_LIT(KEY_DUE), STR_NUMBER(at_ms), member), why);
}

enum err due_take(struct redis *r, const char *key, int64_t now_ms, size_t most,
                  struct view_index *ret, int64_t *past, struct why *why)
{
    const struct redis_value *v;
    int64_t lease_end_ms = (now_ms + DUE_LEASE_MS) | 1;
    const struct str argv[] = {
        str_of(key),
        STR_LIT(KEY_EPOCH),
        STR_NUMBER(now_ms),
        STR_NUMBER(lease_end_ms),
        STR_NUMBER((int64_t)most),
    };
    enum err err =
        redis_call_script(r, &take_script, 2, sizeof(argv) / sizeof(argv[0]), argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n < 1 || v->items[0].type != REDIS_INT)
        return why_set(why, ERR_REFUSE, "due.lua gave an answer that is not its own");
    *ret = (struct view_index){ NULL, 0 };
    for (size_t i = 1; i < v->n; i++)
        view_index_add(ret, v->items[i].text, lease_end_ms);
    *past = v->items[0].integer;
    return OK;
}

enum err due_remove(struct redis *r, const char *key, const struct view_index_entry *taken,
                    struct why *why)
{
    return view_member_remove(r, str_of(key), str_of(taken->name), taken->at_ms, why);
}

#include "lease.h"

#include "keys.h"

extern const char view_lease_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script script = { .source = view_lease_lua };

static const struct {
    const char *leases, *set;
    int64_t ms;
} kinds[] = {
    [LEASE_COMMENT] = { KEY_LEASES "comment", NULL, 120000 },
    [LEASE_DUE] = { KEY_LEASES_DUE, KEY_DUE, LEASE_SET_MS },
    [LEASE_TALLY] = { KEY_LEASES_TALLY, KEY_TALLY, LEASE_SET_MS },
    [LEASE_OVERDUE] = { KEY_LEASES "zombies", KEY_OVERDUE, LEASE_SET_MS },
};

/* One call of lease.lua. *first: the first number of its answer, which is borrowed. */
static enum err call(struct redis *r, enum lease_of of, const struct str args[4], int64_t *first,
                     const struct redis_value **ret, struct why *why)
{
    struct str argv[3 + 4] = { str_of(kinds[of].leases) };
    size_t n = 1;
    if (kinds[of].set) {
        argv[n++] = str_of(kinds[of].set);
        argv[n++] = STR_LIT(KEY_EPOCH);
    }
    for (size_t i = 0; i < 4; i++)
        argv[n + i] = args[i];
    enum err err = redis_call_script(r, &script, n, n + 4, argv, ret, why);
    if (err)
        return err;
    const struct redis_value *v = *ret;
    if (v->type != REDIS_ARRAY || v->n < 1 || !str_to_i64(v->items[0].text, first))
        return why_set(why, ERR_REFUSE, "lease.lua gave an answer that is not its own");
    return OK;
}

enum err lease_take(struct redis *r, enum lease_of of, struct str member, int64_t *expires_ms,
                    struct why *why)
{
    const struct redis_value *v;
    const struct str args[4] = { STR_LIT("take"), STR_NUMBER(kinds[of].ms), member, STR_LIT("") };
    return call(r, of, args, expires_ms, &v, why);
}

void leases_clear(struct leases *list)
{
    view_index_clear(&list->members);
}

enum err lease_take_due(struct redis *r, enum lease_of of, int64_t now_ms, size_t most,
                        struct leases *ret, struct why *why)
{
    const struct redis_value *v;
    const struct str args[4] = { STR_LIT("take_due"), STR_NUMBER(kinds[of].ms), STR_NUMBER(now_ms),
                                 STR_NUMBER((int64_t)most) };
    struct leases list = { .past = 0 };
    enum err err = call(r, of, args, &list.expires_ms, &v, why);
    if (err)
        return err;
    if (v->n > 1)
        (void)str_to_i64(v->items[1].text, &list.past);
    for (size_t i = 2; i + 1 < v->n; i += 2) {
        int64_t due_ms;
        if (str_to_i64(v->items[i + 1].text, &due_ms))
            view_index_add(&list.members, v->items[i].text, due_ms);
    }
    *ret = list;
    return OK;
}

enum err lease_finish(struct redis *r, enum lease_of of, struct str member, int64_t expires_ms,
                      int64_t due_ms, struct why *why)
{
    int64_t done;
    const struct redis_value *v;
    const struct str args[4] = { STR_LIT("finish"), STR_NUMBER(expires_ms), member,
                                 STR_NUMBER(due_ms) };
    return call(r, of, args, &done, &v, why);
}

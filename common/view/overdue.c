#include "overdue.h"

#include <stdlib.h>

#include "../base/mem.h"
#include "entries.h"
#include "keys.h"

extern const char view_overdue_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script take_script = { .source = view_overdue_lua };

void overdue_list_clear(struct overdue_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        result_record_clear(&list->at[i].job);
    free(list->at);
    *list = (struct overdue_list){ NULL, 0 };
}

/* { job key, deadline, field, value, … } */
static bool overdue_read(struct overdue_job *to, const struct redis_value *v)
{
    result_record_init(&to->job);
    if (v->type != REDIS_ARRAY || v->n % 2 != 0 || v->n < 2 ||
        !str_to_i64(v->items[1].text, &to->deadline_ms))
        return false;
    result_record_set(&to->job, STR_LIT("dynamoKey"), v->items[0].text);
    for (size_t i = 2; i < v->n; i += 2)
        result_record_set(&to->job, v->items[i].text, v->items[i + 1].text);
    return true;
}

enum err overdue_take(struct redis *r, int64_t now_ms, size_t most, struct overdue_list *ret,
                      int64_t *past, struct why *why)
{
    const struct redis_value *v;
    const struct str argv[] = {
        STR_LIT(KEY_OVERDUE),      STR_LIT(KEY_OVERDUE_LEASED),
        STR_LIT(KEY_EPOCH),        key_job(NEW_KEY, STR_LIT("")),
        STR_NUMBER(now_ms),        STR_NUMBER(now_ms + OVERDUE_LEASE_MS),
        STR_NUMBER((int64_t)most),
    };
    enum err err =
        redis_call_script(r, &take_script, 4, sizeof(argv) / sizeof(argv[0]), argv, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n < 1 || v->items[0].type != REDIS_INT)
        return why_set(why, ERR_REFUSE, "overdue.lua gave an answer that is not its own");
    struct overdue_list list = { mem_alloc(v->n, sizeof(*list.at)), 0 };
    for (size_t i = 1; i < v->n; i++)
        list.n += overdue_read(&list.at[list.n], &v->items[i]);
    *past = v->items[0].integer;
    *ret = list;
    return OK;
}

enum err overdue_scan(struct redis *r, struct buf *cursor, size_t most, struct job_list *ret,
                      struct why *why)
{
    const struct redis_value *v;
    enum err err = redis_call(r, &v,
                              REDIS_ARGS(STR_LIT("ZSCAN"), STR_LIT(KEY_OVERDUE), buf_str(cursor),
                                         STR_LIT("COUNT"), STR_NUMBER((int64_t)most)),
                              why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != 2)
        return why_set(why, ERR_REFUSE, "the set of overdue jobs is no sorted set");
    buf_reset(cursor);
    buf_put(cursor, v->items[0].text);
    return jobs_of_members(r, v->items[1].items, v->items[1].n, 2, ret, why);
}

enum err overdue_remove(struct redis *r, const struct overdue_job *job, struct why *why)
{
    return view_member_remove(r, STR_LIT(KEY_OVERDUE), str_of(job->job.key), job->deadline_ms, why);
}

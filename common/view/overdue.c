#include "overdue.h"

#include <stdlib.h>

#include "../base/mem.h"
#include "keys.h"
#include "lease.h"

void overdue_list_clear(struct overdue_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        result_record_clear(&list->at[i].job);
    free(list->at);
    *list = (struct overdue_list){ .at = NULL };
}

/* What names a job and its target. False: it has ended or expired. */
static enum err overdue_read(struct redis *r, const struct view_index_entry *member,
                             struct overdue_job *to, bool *ret, struct why *why)
{
    struct str argv[2 + RESULT_FIELDS_MAX] = { STR_LIT("HMGET"),
                                               key_job(NEW_KEY, str_of(member->name)) };
    size_t n = result_record_names(argv + 2, true);
    const struct redis_value *v;
    result_record_init(&to->job);
    to->deadline_ms = member->at_ms;
    *ret = false;
    enum err err = redis_call(r, &v, 2 + n, argv, why);
    if (err == ERR_REFUSE && redis_failed_with(r, "WRONGTYPE"))
        return OK;
    if (err)
        return err;
    result_record_set(&to->job, STR_LIT("dynamoKey"), str_of(member->name));
    for (size_t i = 0; i < v->n; i++)
        if (v->items[i].type == REDIS_STR)
            result_record_set(&to->job, argv[2 + i], v->items[i].text);
    *ret = to->job.state == JOB_IN_PROGRESS;
    return OK;
}

enum err overdue_take(struct redis *r, int64_t now_ms, size_t most, struct overdue_list *ret,
                      struct why *why)
{
    struct leases CLEANUP(leases_clear) taken = { .past = 0 };
    enum err err = lease_take_due(r, LEASE_OVERDUE, now_ms, most, &taken, why);
    if (err)
        return err;
    struct overdue_list list = { mem_alloc(taken.members.n + 1, sizeof(*list.at)), 0, taken.past,
                                 taken.expires_ms };
    for (size_t i = 0; !err && i < taken.members.n; i++) {
        struct overdue_job *job = &list.at[list.n];
        bool open;
        err = overdue_read(r, &taken.members.at[i], job, &open, why);
        list.n += open;
        if (open)
            continue;
        result_record_clear(&job->job);
        list.past--;
        if (!err)
            err = lease_finish(r, LEASE_OVERDUE, str_of(taken.members.at[i].name), taken.expires_ms,
                               taken.members.at[i].at_ms, why);
    }
    if (err)
        overdue_list_clear(&list);
    else
        *ret = list;
    return err;
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

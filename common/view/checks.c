#include "checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "entries.h"
#include "keys.h"

/* "<id> <completed> <digest> <state> <title>": older programs write and read the first three. */
static bool sent_parse(struct str text, struct check_sent *ret)
{
    struct str id, completed, digest, state = STR_NONE;
    uint64_t number;
    if (!str_split(&text, ' ', &id) || !str_split(&text, ' ', &completed) ||
        !str_split(&text, ' ', &digest) || !str_to_u64(id, &number) || number > INT64_MAX)
        return false;
    *ret = (struct check_sent){ .id = (int64_t)number, .completed = str_is(completed, "1") };
    (void)str_split(&text, ' ', &state);
    return str_copy(ret->digest, sizeof(ret->digest), digest) &&
           str_copy(ret->state, sizeof(ret->state), state) &&
           str_copy(ret->title, sizeof(ret->title), text);
}

enum err checks_sent_get(struct redis *r, struct str sha, const struct check_slot *slots, size_t n,
                         struct check_sent *ret, struct why *why)
{
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *reply;
    for (size_t i = 0; i < n; i++)
        redis_batch_put(&batch, REDIS_ARGS(STR_LIT("HGET"), key_check(NEW_KEY, sha, slots[i].name),
                                           slots[i].slot));
    for (size_t i = 0; (reply = redis_batch_next(&batch)); i++)
        if (reply->type != REDIS_STR || !sent_parse(reply->text, &ret[i]))
            ret[i] = (struct check_sent){ 0 };
    return batch.err;
}

enum err check_sent_put(struct redis *r, struct str sha, const struct check_slot *slot,
                        const struct check_sent *sent, const struct view_times *times,
                        struct why *why)
{
    char value[sizeof(*sent) + STR_NUMBER_SIZE];
    snprintf(value, sizeof(value), "%" PRId64 " %d %s %s %s", sent->id, sent->completed,
             sent->digest, sent->state, sent->title);
    return view_field_put(r, key_check(NEW_KEY, sha, slot->name), slot->slot, str_of(value), times,
                          why);
}

void check_list_clear(struct check_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i].slot);
    free(list->at);
    *list = (struct check_list){ NULL, 0 };
}

enum err checks_sent_list(struct redis *r, struct str sha, struct str name, struct check_list *ret,
                          struct why *why)
{
    const struct redis_value *reply;
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HGETALL"), key_check(NEW_KEY, sha, name)), why);
    if (err)
        return err;
    struct check_list list = { mem_alloc(reply->n / 2 + 1, sizeof(*list.at)), 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2) {
        struct check_listed *to = &list.at[list.n];
        if (!sent_parse(reply->items[i + 1].text, &to->sent) || !to->sent.id)
            continue;
        to->slot = str_dup(reply->items[i].text);
        list.n++;
    }
    *ret = list;
    return OK;
}

#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "redis_inner.h"

enum err redis_error_kind(struct str text)
{
    /* The server is there and will take the same command later, or another server will. */
    static const char *const passing[] = { "LOADING ",     "READONLY ",   "OOM ",
                                           "CLUSTERDOWN ", "MASTERDOWN ", "BUSY ",
                                           "NOREPLICAS ",  "MISCONF ",    "TRYAGAIN " };
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (str_starts(text, passing[i]))
            return ERR_RETRY;
    return ERR_REFUSE;
}

static size_t count(const redisReply *reply)
{
    size_t n = 1;
    if (reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            n += count(reply->element[i]);
    return n;
}

static enum redis_type type_of(int hiredis_type)
{
    switch (hiredis_type) {
    case REDIS_REPLY_INTEGER:
        return REDIS_INT;
    case REDIS_REPLY_ARRAY:
        return REDIS_ARRAY;
    case REDIS_REPLY_ERROR:
        return REDIS_ERROR;
    case REDIS_REPLY_NIL:
        return REDIS_NIL;
    default:
        return REDIS_STR;
    }
}

/* Fills to; *room is the first value not taken yet. The items of an array stand side by side. */
static void convert(const redisReply *reply, struct redis_value *to, struct redis_value **room)
{
    *to = (struct redis_value){ .type = type_of(reply->type), .integer = reply->integer };
    if (to->type == REDIS_STR || to->type == REDIS_ERROR)
        to->text = (struct str){ reply->str, (size_t)reply->len };
    if (to->type != REDIS_ARRAY)
        return;
    struct redis_value *items = *room;
    *room += reply->elements;
    for (size_t i = 0; i < reply->elements; i++)
        convert(reply->element[i], &items[i], room);
    to->items = items;
    to->n = reply->elements;
}

enum err redis_value_of(struct redis *r, const redisReply *reply, const struct redis_value **ret,
                        struct why *why)
{
    struct str text = { reply->str, reply->str ? (size_t)reply->len : 0 };
    if (reply->type == REDIS_REPLY_ERROR) {
        r->leave = r->leave || str_starts(text, "READONLY ");
        return why_set(why, redis_error_kind(text), "redis: %.*s", STR_ARG(text));
    }
    size_t n = count(reply);
    if (n > r->n_values) {
        r->values = mem_resize(r->values, n, sizeof(*r->values));
        r->n_values = n;
    }
    struct redis_value *room = r->values + 1;
    convert(reply, r->values, &room);
    *ret = r->values;
    return OK;
}

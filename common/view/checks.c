#include "checks.h"

#include <inttypes.h>
#include <stdio.h>

#include "keys.h"

/* "<id> <completed> <digest>" */
static bool sent_parse(struct str text, struct check_sent *ret)
{
    struct str id, completed, digest;
    uint64_t number;
    if (!str_split(&text, ' ', &id) || !str_split(&text, ' ', &completed) ||
        !str_split(&text, ' ', &digest) || !str_to_u64(id, &number) || number > INT64_MAX)
        return false;
    ret->id = (int64_t)number;
    ret->completed = str_is(completed, "1");
    return str_copy(ret->digest, sizeof(ret->digest), digest);
}

enum err check_sent_get(struct redis *r, struct str sha, struct str name, struct str slot,
                        bool *found, struct check_sent *ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) key;
    const struct redis_value *reply;
    buf_init(&key, VIEW_KEY_MAX);
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HGET"), key_check(&key, sha, name), slot), why);
    if (err == OK)
        *found = reply->type == REDIS_STR && sent_parse(reply->text, ret);
    return err;
}

enum err check_sent_put(struct redis *r, struct str sha, struct str name, struct str slot,
                        const struct check_sent *sent, const struct view_times *times,
                        struct why *why)
{
    struct buf CLEANUP(buf_clear) buf;
    char value[64], ttl[24];
    buf_init(&buf, VIEW_KEY_MAX);
    struct str key = key_check(&buf, sha, name);
    snprintf(value, sizeof(value), "%" PRId64 " %d %s", sent->id, sent->completed, sent->digest);
    snprintf(ttl, sizeof(ttl), "%" PRId64, times->ttl_s);
    const struct redis_value *reply;
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HSET"), key, slot, str_of(value)), why);
    if (err != OK)
        return err;
    return redis_call(r, &reply, REDIS_ARGS(STR_LIT("EXPIRE"), key, str_of(ttl)), why);
}

#include "comments.h"

#include <inttypes.h>
#include <stdio.h>

#include "entries.h"
#include "keys.h"

#define REFUSED "refused" /* in place of a digest */

/* "<id> <digest>" */
static bool sent_parse(struct str text, struct comment_sent *ret)
{
    struct str id;
    uint64_t number;
    if (!str_split(&text, ' ', &id) || !str_to_u64(id, &number) || number > INT64_MAX)
        return false;
    ret->known = true;
    ret->id = (int64_t)number;
    ret->refused = str_is(text, REFUSED);
    return str_copy(ret->digest, sizeof(ret->digest), text);
}

enum err comment_sent_get(struct redis *r, int64_t pr, struct str repo, struct comment_sent *ret,
                          struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(
        r, &reply, REDIS_ARGS(STR_LIT("HGET"), key_comment(NEW_KEY, pr, repo), STR_LIT("sent")),
        why);
    if (!err && (reply->type != REDIS_STR || !sent_parse(reply->text, ret)))
        *ret = (struct comment_sent){ 0 };
    return err;
}

enum err comment_sent_put(struct redis *r, int64_t pr, struct str repo,
                          const struct comment_sent *sent, const struct view_times *times,
                          struct why *why)
{
    char value[64];
    const struct redis_value *reply;
    struct str key = key_comment(NEW_KEY, pr, repo);
    if (!sent->known)
        return redis_call(r, &reply, REDIS_ARGS(STR_LIT("DEL"), key), why);
    snprintf(value, sizeof(value), "%" PRId64 " %s", sent->id,
             sent->refused ? REFUSED : sent->digest);
    return view_field_put(r, key, STR_LIT("sent"), str_of(value), times, why);
}

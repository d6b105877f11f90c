#include "commits.h"

#include "keys.h"

enum err commit_seen_get(struct redis *r, struct str sha, enum commit_seen *ret, struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(r, &reply, REDIS_ARGS(STR_LIT("GET"), key_commit(NEW_KEY, sha)), why);
    if (err)
        return err;
    *ret = COMMIT_UNKNOWN;
    if (reply->type == REDIS_STR)
        *ret = str_is(reply->text, "1")   ? COMMIT_EXISTS
               : str_is(reply->text, "0") ? COMMIT_ABSENT
                                          : COMMIT_ASKED;
    return OK;
}

enum err commit_seen_put(struct redis *r, struct str sha, enum commit_seen seen,
                         const struct view_times *times, struct why *why)
{
    const struct redis_value *reply;
    return redis_call(r, &reply,
                      REDIS_ARGS(STR_LIT("SET"), key_commit(NEW_KEY, sha),
                                 seen == COMMIT_EXISTS   ? STR_LIT("1")
                                 : seen == COMMIT_ABSENT ? STR_LIT("0")
                                                         : STR_LIT("?"),
                                 STR_LIT("EX"), STR_NUMBER(times->ttl_s)),
                      why);
}

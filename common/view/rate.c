#include "rate.h"

#include "keys.h"

extern const char view_rate_lua[];

enum err rate_take(struct redis *r, struct str repo, int64_t bytes, int64_t requests_per_min,
                   int64_t bytes_per_min, int *retry_after_s, struct why *why)
{
    /* Ingest's threads all come here, and a script remembers its SHA without a lock. */
    static _Thread_local struct redis_script script = { .source = view_rate_lua };
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, VIEW_KEY_MAX);
    char text[3][STR_NUMBER_SIZE];
    const struct str argv[] = { key_rate(&key, repo), str_number(text[0], bytes),
                                str_number(text[1], requests_per_min),
                                str_number(text[2], bytes_per_min) };
    const struct redis_value *answer;
    enum err err = redis_call_script(r, &script, 1, 4, argv, &answer, why);
    if (err)
        return err;
    if (answer->type != REDIS_INT)
        return why_set(why, ERR_REFUSE, "rate.lua gave no number");
    *retry_after_s = (int)answer->integer;
    return OK;
}

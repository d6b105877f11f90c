#include "allowlist_note.h"

#include "keys.h"

enum err allowlist_note_error(struct redis *r, char error[ALLOWLIST_NOTE_MAX], struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(
        r, &reply, REDIS_ARGS(STR_LIT("HGET"), STR_LIT(KEY_ALLOWLIST), STR_LIT("error")), why);
    if (err)
        return err;
    struct str text = reply->type == REDIS_STR ? reply->text : STR_LIT("");
    (void)str_copy(error, ALLOWLIST_NOTE_MAX, str_cut(text, ALLOWLIST_NOTE_MAX - 1));
    return OK;
}

#include "json_member.h"

#include <jansson.h>

#include "../base/buf.h"
#include "json_scan.h"

json_t *json_document(struct str text, struct why *why)
{
    struct buf CLEANUP(buf_clear) plain = BUF_INIT(text.len);
    json_error_t fault;
    json_replace_nul(&plain, text, STR_LIT("\\u0000"));
    text = buf_str(&plain);
    json_t *document =
        json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &fault);
    if (!document)
        (void)why_set(why, ERR_REFUSE, "%s", fault.text);
    return document;
}

struct str json_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return (struct str){ json_string_value(value), json_string_length(value) };
}

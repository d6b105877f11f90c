#include "record_text.h"

#include <inttypes.h>

#include "../../common/base/json_put.h"
#include "../../common/model/task.h"

void record_text_put(struct buf *to, const struct record *record)
{
    const struct headers *h = &record->headers;
    const struct {
        const char *name;
        size_t max;
        struct str text;
    } members[] = {
        { "delivery", DELIVERY_MAX, headers_get(h, "delivery") },
        { "repos", 200, task_repos(h) },
        { "key", 120, record->key },
        { "error", 300, headers_get(h, "error") },
        /* In the DLQ; the last one in delay topics, too. */
        { "class", 16, headers_get(h, "class") },
        { "source_topic", 96, headers_get(h, "source_topic") },
        { "to_topic", 96, headers_get(h, "to_topic") },
    };
    json_put_comma(to);
    buf_printf(to, "\"position\":\"%" PRId32 "@%" PRId64 "\"", record->at.partition,
               record->at.offset);
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        struct str text = str_cut(members[i].text, members[i].max);
        json_put_text(to, members[i].name, text.len ? text : STR_NONE);
    }
}

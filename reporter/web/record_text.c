#include "record_text.h"

#include <inttypes.h>

#include "../../common/base/json_put.h"
#include "../../common/model/task.h"

/* The members that are text, and the headers that they come from; NULL: another way. */
static const struct {
    const char *name, *header;
    size_t at, size;
} members[] = {
#define MEMBER(field, header)                                                                      \
    {                                                                                              \
#field, header, offsetof(struct record_text, field),                                       \
            sizeof(((struct record_text *)0)->field)                                               \
    }
    MEMBER(delivery, "delivery"), MEMBER(repos, NULL),    MEMBER(key, NULL),
    MEMBER(error, "error"),       MEMBER(class, "class"), MEMBER(source_topic, "source_topic"),
    MEMBER(to_topic, "to_topic"),
#undef MEMBER
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

void record_text_init(struct record_text *t, const struct record *record)
{
    *t = (struct record_text){ .partition = record->at.partition, .offset = record->at.offset };
    for (size_t i = 0; i < N_MEMBERS; i++) {
        char *to = (char *)t + members[i].at;
        struct str text = members[i].header ? headers_get(&record->headers, members[i].header)
                          : to == t->key    ? record->key
                                            : task_repos(&record->headers);
        (void)str_copy(to, members[i].size, str_cut(text, members[i].size - 1));
    }
}

void record_text_put(struct buf *to, const struct record_text *t)
{
    json_put_comma(to);
    buf_printf(to, "\"position\":\"%" PRId32 "@%" PRId64 "\"", t->partition, t->offset);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const char *text = (const char *)t + members[i].at;
        json_put_text(to, members[i].name, *text ? str_of(text) : STR_NONE);
    }
}

#include "open_dlq.h"

#include <stdlib.h>
#include <uthash.h>

#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "../../common/model/dlq_entry.h"
#include "../../common/model/task.h"

#define TEXT_MAX 16384

struct entry {
    UT_hash_handle hh;
    char place[DLQ_PLACE_SIZE]; /* its key */
    struct dlq_place at;
    int64_t parked_ms;
    char *text; /* a JSON object */
};

struct open_dlq {
    struct entry *entries;
    bool more; /* others were forgotten */
};

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
    char place[DLQ_PLACE_SIZE];
    dlq_place_text((struct dlq_place){ record->at.partition, record->at.offset }, place);
    json_put_string(to, "position", place);
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        struct str text = str_cut(members[i].text, members[i].max);
        json_put_text(to, members[i].name, text.len ? text : STR_NONE);
    }
}

struct open_dlq *open_dlq_new(void)
{
    return mem_alloc(1, sizeof(struct open_dlq));
}

static void forget(struct open_dlq *d, struct entry *e)
{
    HASH_DEL(d->entries, e);
    free(e->text);
    free(e);
}

void open_dlq_free(struct open_dlq *d)
{
    struct entry *e, *next;
    if (!d)
        return;
    HASH_ITER(hh, d->entries, e, next)
    forget(d, e);
    free(d);
}

static int by_newest(const struct entry *a, const struct entry *b)
{
    return (a->parked_ms < b->parked_ms) - (a->parked_ms > b->parked_ms);
}

static void make_room(struct open_dlq *d)
{
    struct entry *e, *next;
    size_t kept = 0;
    HASH_SORT(d->entries, by_newest);
    HASH_ITER(hh, d->entries, e, next)
    if (++kept > OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10)
        forget(d, e);
    d->more = true;
}

void open_dlq_add(struct open_dlq *d, const struct record *record)
{
    struct dlq_place of = { record->at.partition, record->at.offset };
    bool resolves = dlq_resolution(&record->headers, &of) != DLQ_OPEN;
    char place[DLQ_PLACE_SIZE];
    struct entry *e;
    struct buf text;
    dlq_place_text(of, place);
    HASH_FIND_STR(d->entries, place, e);
    if (resolves && e)
        forget(d, e);
    if (resolves || e)
        return;
    if (HASH_COUNT(d->entries) >= OPEN_DLQ_MAX)
        make_room(d);
    e = mem_alloc(1, sizeof(*e));
    e->at = of;
    e->parked_ms = headers_get_i64(&record->headers, "parked_ms", record->timestamp_ms);
    buf_init(&text, TEXT_MAX);
    buf_putc(&text, '{');
    record_text_put(&text, record);
    json_put_time(&text, "parked_at", e->parked_ms);
    buf_putc(&text, '}');
    e->text = buf_take(&text, NULL);
    dlq_place_text(of, e->place);
    HASH_ADD_STR(d->entries, place, e);
}

void open_dlq_expire(struct open_dlq *d, int32_t partition, int64_t first)
{
    struct entry *e, *next;
    HASH_ITER(hh, d->entries, e, next)
    if (e->at.partition == partition && e->at.offset < first)
        forget(d, e);
}

void open_dlq_put(struct buf *to, struct open_dlq *d, bool entries)
{
    const struct entry *e = NULL;
    if (d)
        HASH_SORT(d->entries, by_newest);
    if (d)
        e = d->entries;
    json_put_begin(to, "dlq", '{');
    json_put_number(to, "open", d ? (int64_t)HASH_COUNT(d->entries) : -1);
    json_put_name(to, "more");
    buf_puts(to, d && d->more ? "true" : "false");
    json_put_time(to, "newest_at", e ? e->parked_ms : 0);
    if (entries)
        json_put_begin(to, "entries", '[');
    for (size_t i = 0; entries && e && i < OPEN_DLQ_SHOWN; i++, e = e->hh.next) {
        json_put_comma(to);
        buf_puts(to, e->text);
    }
    buf_puts(to, entries ? "]}" : "}");
}

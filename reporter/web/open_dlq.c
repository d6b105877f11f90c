#include "open_dlq.h"

#include <stdlib.h>
#include <uthash.h>

#include "../../common/base/mem.h"

struct entry {
    struct open_dlq_entry is; /* first: what is handed out */
    UT_hash_handle hh;
    char place[DLQ_PLACE_SIZE]; /* its key */
};

struct open_dlq {
    struct entry *entries;
    bool more;
};

struct open_dlq *open_dlq_new(void)
{
    return mem_alloc(1, sizeof(struct open_dlq));
}

static void forget(struct open_dlq *d, struct entry *e)
{
    HASH_DEL(d->entries, e);
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
    return (a->is.parked_ms < b->is.parked_ms) - (a->is.parked_ms > b->is.parked_ms);
}

void open_dlq_sort(struct open_dlq *d)
{
    HASH_SORT(d->entries, by_newest);
}

static void make_room(struct open_dlq *d)
{
    struct entry *e, *next;
    size_t kept = 0;
    open_dlq_sort(d);
    HASH_ITER(hh, d->entries, e, next)
    if (++kept > OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10)
        forget(d, e);
    d->more = true;
}

void open_dlq_add(struct open_dlq *d, const struct record *record)
{
    const struct headers *h = &record->headers;
    struct dlq_place of = { record->at.partition, record->at.offset };
    bool resolves = dlq_resolution(h, &of) != DLQ_OPEN;
    char place[DLQ_PLACE_SIZE];
    struct entry *e;
    dlq_place_text(of, place);
    HASH_FIND_STR(d->entries, place, e);
    if (resolves && e)
        forget(d, e);
    if (resolves || e)
        return;
    if (HASH_COUNT(d->entries) >= OPEN_DLQ_MAX)
        make_room(d);
    e = mem_alloc(1, sizeof(*e));
    record_text_init(&e->is.text, record);
    e->is.parked_ms = headers_get_i64(h, "parked_ms", record->timestamp_ms);
    dlq_place_text(of, e->place);
    HASH_ADD_STR(d->entries, place, e);
}

void open_dlq_expire(struct open_dlq *d, int32_t partition, int64_t first)
{
    struct entry *e, *next;
    HASH_ITER(hh, d->entries, e, next)
    if (e->is.text.partition == partition && e->is.text.offset < first)
        forget(d, e);
}

size_t open_dlq_count(const struct open_dlq *d, bool *more)
{
    *more = d->more;
    return HASH_COUNT(d->entries);
}

const struct open_dlq_entry *open_dlq_next(const struct open_dlq *d,
                                           const struct open_dlq_entry *entry)
{
    const struct entry *e = (const struct entry *)entry;
    const struct entry *next = e ? e->hh.next : d->entries;
    return next ? &next->is : NULL;
}

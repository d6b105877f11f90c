#include "dlq_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "../base/mem.h"
#include "task.h"

#define COPY(to, from) ((void)str_copy((to), sizeof(to), str_cut((from), sizeof(to) - 1)))

static const char *const state_names[] = {
    [DLQ_OPEN] = "open",
    [DLQ_REPLAYED] = "replayed",
    [DLQ_DROPPED] = "dropped",
};

const char *dlq_state_name(enum dlq_state state)
{
    return state_names[state];
}

bool dlq_position_parse(struct str text, struct dlq_position *ret)
{
    struct str partition;
    int64_t number, offset;
    if (!str_split(&text, '@', &partition) || !str_to_i64(partition, &number) || number < 0 ||
        number > INT32_MAX || !str_to_i64(text, &offset) || offset < 0)
        return false;
    *ret = (struct dlq_position){ (int32_t)number, offset };
    return true;
}

void dlq_position_text(struct dlq_position at, char to[DLQ_POSITION_SIZE])
{
    snprintf(to, DLQ_POSITION_SIZE, "%" PRId32 "@%" PRId64, at.partition, at.offset);
}

/* What the record with these headers makes of the entry at *of; DLQ_OPEN: it is an entry itself,
 * *of is untouched. What was parked keeps the headers that it came with: class says whose
 * `resolves` it is. */
static enum dlq_state resolution(const struct headers *headers, struct dlq_position *of)
{
    struct str class = headers_get(headers, "class"), resolves = headers_get(headers, "resolves");
    for (enum dlq_state to = DLQ_REPLAYED; to <= DLQ_DROPPED; to++)
        if (str_is(class, state_names[to]) && resolves.ptr && dlq_position_parse(resolves, of))
            return to;
    return DLQ_OPEN;
}

void dlq_entry_read(struct dlq_entry *e, int64_t timestamp_ms, struct str key,
                    const struct headers *headers)
{
    e->parked_ms = headers_get_i64(headers, "parked_ms", timestamp_ms);
    COPY(e->class, headers_get(headers, "class"));
    COPY(e->source_topic, headers_get(headers, "source_topic"));
    COPY(e->to_topic, headers_get(headers, "to_topic"));
    COPY(e->key, key);
    COPY(e->delivery, headers_get(headers, "delivery"));
    COPY(e->error, headers_get(headers, "error"));
    e->repos = str_dup(str_cut(task_repos(headers), TASK_REPOS_SIZE));
}

void dlq_entry_clear(struct dlq_entry *e)
{
    free(e->repos);
    e->repos = NULL;
}

/* ---- the queue ------------------------------------------------------------------------------- */

struct dlq_item {
    struct dlq_entry entry; /* first: dlq_next comes back from it */
    UT_hash_handle hh;      /* by position */
};

static void forget(struct dlq *d, struct dlq_item *item)
{
    HASH_DEL(d->items, item);
    dlq_entry_clear(&item->entry);
    free(item);
}

void dlq_clear(struct dlq *d)
{
    struct dlq_item *item, *next;
    HASH_ITER(hh, d->items, item, next)
    forget(d, item);
}

static struct dlq_item *item_get(const struct dlq *d, struct dlq_position at)
{
    struct dlq_item *item;
    char position[DLQ_POSITION_SIZE];
    dlq_position_text(at, position);
    HASH_FIND_STR(d->items, position, item);
    return item;
}

static struct dlq_entry *make(struct dlq *d, struct dlq_position at)
{
    struct dlq_item *item = item_get(d, at);
    if (item)
        return &item->entry;
    item = mem_alloc(1, sizeof(*item));
    item->entry.at = at;
    dlq_position_text(at, item->entry.position);
    HASH_ADD_STR(d->items, entry.position, item);
    return &item->entry;
}

static int by_oldest(const struct dlq_item *one, const struct dlq_item *other)
{
    const struct dlq_entry *a = &one->entry, *b = &other->entry;
    if (a->parked_ms != b->parked_ms)
        return a->parked_ms < b->parked_ms ? -1 : 1;
    if (a->at.partition != b->at.partition)
        return a->at.partition < b->at.partition ? -1 : 1;
    return (a->at.offset > b->at.offset) - (a->at.offset < b->at.offset);
}

static int by_newest(const struct dlq_item *a, const struct dlq_item *b)
{
    return by_oldest(b, a);
}

void dlq_sort(struct dlq *d, bool newest_first)
{
    int (*order)(const struct dlq_item *, const struct dlq_item *) =
        newest_first ? by_newest : by_oldest;
    struct dlq_item *item, *next;
    HASH_ITER(hh, d->items, item, next)
    if (!item->entry.exists)
        forget(d, item);
    HASH_SORT(d->items, order);
}

static void make_room(struct dlq *d)
{
    struct dlq_item *item, *next;
    size_t n = d->open_max / 10;
    dlq_sort(d, false);
    HASH_ITER(hh, d->items, item, next)
    if (n-- > 0)
        forget(d, item);
    else
        break;
    d->more = true;
}

void dlq_add(struct dlq *d, struct dlq_position at, int64_t timestamp_ms, struct str key,
             const struct headers *headers)
{
    struct dlq_position of;
    enum dlq_state became = resolution(headers, &of);
    struct dlq_item *item;
    if (became == DLQ_OPEN) {
        if (d->open_max && dlq_count(d) >= d->open_max)
            make_room(d);
        struct dlq_entry *e = make(d, at);
        if (!e->exists)
            dlq_entry_read(e, timestamp_ms, key, headers);
        e->exists = true;
    } else if (!d->open_max) {
        make(d, of)->state = became;
    } else if ((item = item_get(d, of))) {
        forget(d, item);
    }
}

void dlq_expire(struct dlq *d, int32_t partition, int64_t first)
{
    struct dlq_item *item, *next;
    HASH_ITER(hh, d->items, item, next)
    if (item->entry.at.partition == partition && item->entry.at.offset < first)
        forget(d, item);
}

size_t dlq_count(const struct dlq *d)
{
    return HASH_COUNT(d->items);
}

struct dlq_entry *dlq_find(const struct dlq *d, struct dlq_position at)
{
    struct dlq_item *item = item_get(d, at);
    return item && item->entry.exists ? &item->entry : NULL;
}

struct dlq_entry *dlq_next(const struct dlq *d, const struct dlq_entry *after)
{
    const struct dlq_item *item = (const struct dlq_item *)after;
    struct dlq_item *next = item ? item->hh.next : d->items;
    return next ? &next->entry : NULL;
}

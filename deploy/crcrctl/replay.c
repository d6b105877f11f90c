#include "replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "../../common/base/mem.h"

struct chosen {
    UT_hash_handle hh;
    int64_t at[2]; /* partition, offset */
    bool done;
};

struct seen_delivery {
    UT_hash_handle hh;
    char text[DELIVERY_MAX + 1];
};

struct replay {
    struct replay_filter filter;
    struct str id;
    bool events;
    struct chosen *by_place;
    struct seen_delivery *deliveries; /* events: those that are chosen */
};

struct replay *replay_new(const struct replay_filter *filter, struct str id, bool events)
{
    struct replay *r = mem_alloc(1, sizeof(*r));

    *r = (struct replay){ .filter = *filter, .id = id, .events = events };
    return r;
}

void replay_free(struct replay *r)
{
    struct chosen *c, *next;
    struct seen_delivery *d, *d_next;

    if (!r)
        return;
    HASH_ITER(hh, r->by_place, c, next)
    {
        HASH_DEL(r->by_place, c);
        free(c);
    }
    HASH_ITER(hh, r->deliveries, d, d_next)
    {
        HASH_DEL(r->deliveries, d);
        free(d);
    }
    free(r);
}

static struct chosen *chosen_at(struct replay *r, int32_t partition, int64_t offset, bool make)
{
    const int64_t at[2] = { partition, offset };
    struct chosen *found;

    HASH_FIND(hh, r->by_place, at, sizeof(at), found);
    if (found || !make)
        return found;
    found = mem_alloc(1, sizeof(*found));
    found->at[0] = partition;
    found->at[1] = offset;
    HASH_ADD(hh, r->by_place, at, sizeof(found->at), found);
    return found;
}

static bool is_first_of_delivery(struct replay *r, struct str delivery)
{
    struct seen_delivery *one;

    if (!delivery.len || delivery.len > DELIVERY_MAX)
        return true; /* the router parks it, as it did before */
    HASH_FIND(hh, r->deliveries, delivery.ptr, delivery.len, one);
    if (one)
        return false;
    one = mem_alloc(1, sizeof(*one));
    str_copy(one->text, sizeof(one->text), delivery);
    HASH_ADD_KEYPTR(hh, r->deliveries, one->text, delivery.len, one);
    return true;
}

/* What this replay wrote before it was ended. A mark of it that comes before what it speaks of, as
 * offsets of other partitions may, makes the place known as done. */
static void note_done(struct replay *r, const struct headers *h)
{
    struct dlq_place of;

    if (str_eq(headers_get(h, "replay"), r->id) &&
        dlq_place_parse(headers_get(h, "replay_of"), &of))
        chosen_at(r, of.partition, of.offset, true)->done = true;
}

void replay_add(struct replay *r, const struct record *record)
{
    const struct replay_filter *f = &r->filter;
    const struct headers *h = &record->headers;

    if (headers_get(h, "replay").ptr) {
        note_done(r, h);
        return;
    }
    if (f->delivery.len && !str_eq(f->delivery, headers_get(h, "delivery")))
        return;
    if ((f->pr && headers_get_i64(h, "pr", 0) != f->pr) || record->timestamp_ms < f->since_ms ||
        record->timestamp_ms >= f->until_ms)
        return;
    if (!r->events || is_first_of_delivery(r, headers_get(h, "delivery")))
        (void)chosen_at(r, record->at.partition, record->at.offset, true);
}

size_t replay_todo(struct replay *r, size_t *done_before)
{
    struct chosen *c, *next;
    size_t todo = 0;

    *done_before = 0;
    HASH_ITER(hh, r->by_place, c, next)
    {
        if (c->done)
            ++*done_before;
        else
            todo++;
    }
    return todo;
}

bool replay_take(struct replay *r, const struct record *record)
{
    struct chosen *c = chosen_at(r, record->at.partition, record->at.offset, false);

    if (!c || c->done)
        return false;
    c->done = true;
    return true;
}

void replay_headers(const struct record *record, struct str id, bool events, bool again,
                    struct headers *to)
{
    char place[64];

    headers_copy(to, &record->headers);
    if (events)
        headers_set(to, "source", STR_LIT("replay"));
    headers_remove(to, "again");
    if (again)
        headers_put(to, "again", id);
    headers_put(to, "replay", id);
    snprintf(place, sizeof(place), "%" PRId32 "@%" PRId64, record->at.partition, record->at.offset);
    headers_put_copy(to, "replay_of", str_of(place));
}

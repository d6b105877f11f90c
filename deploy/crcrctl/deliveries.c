#include "deliveries.h"

#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/model/event_rules.h"
#include "../../common/model/ids.h"

/* GitHub waits 10 s for an answer; what has none after that will have none. */
#define PENDING_MS 60000

void deliveries_init(struct deliveries *d)
{
    *d = (struct deliveries){ .by_guid = NULL };
}

void deliveries_clear(struct deliveries *d)
{
    struct delivery *one, *next;

    HASH_ITER(hh, d->by_guid, one, next)
    {
        HASH_DEL(d->by_guid, one);
        free(one);
    }
    deliveries_init(d);
}

struct delivery *deliveries_find(const struct deliveries *d, struct str guid)
{
    struct delivery *found = NULL;

    if (guid.len)
        HASH_FIND(hh, d->by_guid, guid.ptr, guid.len, found);
    return found;
}

/* ---- pages ---------------------------------------------------------------------------------- */

struct attempt {
    struct str guid, event, action;
    int64_t id, at_ms, status;
    bool redelivery;
};

static struct str text_of(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(row, name);

    return (struct str){ json_string_value(value), json_string_length(value) };
}

static enum err read_attempt(const json_t *row, struct attempt *ret, struct why *why)
{
    *ret = (struct attempt){
        .guid = text_of(row, "guid"),
        .event = text_of(row, "event"),
        .action = text_of(row, "action"),
        .id = json_integer_value(json_object_get(row, "id")),
        .status = json_integer_value(json_object_get(row, "status_code")),
        .redelivery = json_is_true(json_object_get(row, "redelivery")),
    };
    if (!ret->guid.ptr || ret->id <= 0)
        return why_set(why, ERR_REFUSE, "GitHub's list of deliveries: an entry without guid or id");
    enum err err = clock_parse(text_of(row, "delivered_at"), &ret->at_ms, why);
    return err ? why_prefix(why, err, "GitHub's list of deliveries: delivered_at") : OK;
}

/* Newest first: the first attempt of a GUID that is met is its newest. */
static struct delivery *delivery_of(struct deliveries *d, const struct attempt *a)
{
    struct delivery *one = deliveries_find(d, a->guid);

    if (one)
        return one;
    one = mem_alloc(1, sizeof(*one));
    str_copy(one->guid, sizeof(one->guid), a->guid);
    one->id = a->id;
    one->kind = event_kind_of(a->event);
    if (!event_may_count(one->kind, a->action)) {
        one->state = DELIVERY_SKIPPED;
        one->skipped = one->kind == EVENT_OTHER ? "other_event" : "other_action";
    }
    HASH_ADD_KEYPTR(hh, d->by_guid, one->guid, a->guid.len, one);
    return one;
}

static void add(struct deliveries *d, const struct attempt *a, int64_t now_ms)
{
    d->attempts++;
    if (!delivery_valid(a->guid)) {
        d->n_malformed++;
        return;
    }
    struct delivery *one = delivery_of(d, a);
    one->first_ms = a->at_ms;
    one->has_first |= !a->redelivery;
    if (a->status >= 200 && a->status < 300)
        one->state = DELIVERY_DELIVERED;
    else if (one->state == DELIVERY_MISSING && a->status == 0 && now_ms - a->at_ms < PENDING_MS)
        one->state = DELIVERY_PENDING;
}

enum err deliveries_add(struct deliveries *d, struct str page, int64_t since_ms, int64_t now_ms,
                        bool *older, struct why *why)
{
    json_error_t fault;
    json_t *rows = json_loadb(page.ptr ? page.ptr : "", page.len, 0, &fault), *row;
    enum err err = OK;
    size_t i;

    *older = false;
    if (!json_is_array(rows)) {
        json_decref(rows);
        return why_set(why, ERR_REFUSE, "GitHub's list of deliveries is no JSON array");
    }
    json_array_foreach(rows, i, row)
    {
        struct attempt attempt;
        err = read_attempt(row, &attempt, why);
        *older = !err && attempt.at_ms < since_ms;
        if (err || *older)
            break;
        add(d, &attempt, now_ms);
    }
    json_decref(rows);
    return err;
}

void deliveries_doubt(struct deliveries *d)
{
    struct delivery *one, *next;

    HASH_ITER(hh, d->by_guid, one, next)
    {
        if (one->state == DELIVERY_DELIVERED)
            one->state = one->skipped ? DELIVERY_SKIPPED : DELIVERY_MISSING;
    }
}

/* ---- what follows --------------------------------------------------------------------------- */

static int by_age(const void *left, const void *right)
{
    const struct delivery *a = *(struct delivery *const *)left,
                          *b = *(struct delivery *const *)right;

    if (a->first_ms != b->first_ms)
        return a->first_ms < b->first_ms ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

size_t deliveries_missing(const struct deliveries *d, struct delivery ***ret)
{
    struct delivery **all = mem_alloc(HASH_COUNT(d->by_guid) + 1, sizeof(struct delivery *));
    struct delivery *one, *next;
    size_t n = 0;

    HASH_ITER(hh, d->by_guid, one, next)
    {
        if (one->state == DELIVERY_MISSING)
            all[n++] = one;
    }
    qsort(all, n, sizeof(struct delivery *), by_age);
    *ret = all;
    return n;
}

size_t deliveries_count(const struct deliveries *d, enum delivery_state state)
{
    size_t n = state == DELIVERY_SKIPPED ? d->n_malformed : 0;
    struct delivery *one, *next;

    HASH_ITER(hh, d->by_guid, one, next)
    {
        n += one->state == state;
    }
    return n;
}

/* Every reason that a delivery can be skipped for. */
static const char *const reasons[] = { "other_event", "other_action", "other_repository",
                                       "body_malformed" };

static void put_reasons(const struct deliveries *d, struct buf *to)
{
    struct delivery *one, *next;
    const char *separator = " (";

    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        size_t n = 0;
        HASH_ITER(hh, d->by_guid, one, next)
        {
            n += one->state == DELIVERY_SKIPPED && str_is(str_of(one->skipped), reasons[i]);
        }
        if (!n)
            continue;
        buf_printf(to, "%s%s %zu", separator, reasons[i], n);
        separator = ", ";
    }
    if (d->n_malformed)
        buf_printf(to, "%sguid_malformed %zu", separator, d->n_malformed);
    if (d->n_malformed || *separator == ',')
        buf_putc(to, ')');
}

void deliveries_sum(const struct deliveries *d, bool dry_run, struct buf *to)
{
    buf_printf(to,
               "%zu deliveries (%zu attempts): %zu delivered, %zu already here, %zu %s, %zu not "
               "answered yet, %zu skipped",
               HASH_COUNT(d->by_guid) + d->n_malformed, d->attempts,
               deliveries_count(d, DELIVERY_DELIVERED), deliveries_count(d, DELIVERY_STORED),
               deliveries_count(d, DELIVERY_PUBLISHED), dry_run ? "to publish" : "published",
               deliveries_count(d, DELIVERY_PENDING), deliveries_count(d, DELIVERY_SKIPPED));
    put_reasons(d, to);
    buf_printf(to, ", %zu failed", deliveries_count(d, DELIVERY_FAILED));
    if (deliveries_count(d, DELIVERY_MISSING))
        buf_printf(to, ", %zu not looked at", deliveries_count(d, DELIVERY_MISSING));
}

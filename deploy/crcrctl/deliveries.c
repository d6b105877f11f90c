#include "deliveries.h"

#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/model/event_rules.h"
#include "../../common/model/ids.h"
#include "../../common/model/json_member.h"

/* GitHub waits 10 s for an answer; what has none after that will have none. */
#define PENDING_MS 60000

void deliveries_init(struct deliveries *d)
{
    *d = (struct deliveries){ .by_guid.size = sizeof(struct delivery) };
}

void deliveries_clear(struct deliveries *d)
{
    table_clear(&d->by_guid);
    deliveries_init(d);
}

struct delivery *deliveries_find(const struct deliveries *d, struct str guid)
{
    return table_get(&d->by_guid, guid);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* One attempt. Newest first: the first attempt of a GUID that is met is its newest. */
static void add(struct deliveries *d, const json_t *row, int64_t id, int64_t at_ms, int64_t now_ms)
{
    int64_t status = json_integer_value(json_object_get(row, "status_code"));
    struct str guid = json_member(row, "guid");
    struct delivery *one = deliveries_find(d, guid);
    d->attempts++;
    if (!delivery_valid(guid)) {
        d->n_malformed++;
        return;
    }
    if (!one) {
        one = table_make(&d->by_guid, guid);
        one->guid = table_key(one);
        one->id = id;
        one->kind = event_kind_of(json_member(row, "event"));
        if (!event_may_count(one->kind, json_member(row, "action"))) {
            one->state = DELIVERY_SKIPPED;
            one->skipped = one->kind == EVENT_OTHER ? "other_event" : "other_action";
        }
    }
    one->first_ms = at_ms;
    one->has_first |= !json_is_true(json_object_get(row, "redelivery"));
    if (status >= 200 && status < 300)
        one->state = DELIVERY_DELIVERED;
    else if (one->state == DELIVERY_MISSING && status == 0 && now_ms - at_ms < PENDING_MS)
        one->state = DELIVERY_PENDING;
}

enum err deliveries_add(struct deliveries *d, struct str page, int64_t since_ms, int64_t now_ms,
                        bool *older, struct why *why)
{
    json_t *rows = json_document(page, NULL), *row;
    enum err err = OK;
    size_t i;
    *older = false;
    if (!json_is_array(rows))
        err = why_set(why, ERR_REFUSE, "GitHub's list of deliveries is no JSON array");
    json_array_foreach(rows, i, row)
    {
        int64_t at_ms, id = json_integer_value(json_object_get(row, "id"));
        if (!json_member(row, "guid").ptr || id <= 0)
            err = why_set(why, ERR_REFUSE,
                          "GitHub's list of deliveries: an entry without guid or id");
        else if ((err = clock_parse(json_member(row, "delivered_at"), &at_ms, why)))
            (void)why_prefix(why, err, "GitHub's list of deliveries: delivered_at");
        else
            *older = at_ms < since_ms;
        if (err || *older)
            break;
        add(d, row, id, at_ms, now_ms);
    }
    json_decref(rows);
    return err;
}

void deliveries_doubt(struct deliveries *d)
{
    for (struct delivery *one = NULL; (one = table_next(&d->by_guid, one));)
        if (one->state == DELIVERY_DELIVERED)
            one->state = one->skipped ? DELIVERY_SKIPPED : DELIVERY_MISSING;
}

/* ---- what follows --------------------------------------------------------------------------- */

static int by_age(const void *left, const void *right)
{
    const struct delivery *a = *(struct delivery *const *)left,
                          *b = *(struct delivery *const *)right;
    int order = (a->first_ms > b->first_ms) - (a->first_ms < b->first_ms);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

size_t deliveries_missing(const struct deliveries *d, struct delivery ***ret)
{
    struct delivery **all = mem_alloc(table_count(&d->by_guid) + 1, sizeof(struct delivery *));
    size_t n = 0;
    for (struct delivery *one = NULL; (one = table_next(&d->by_guid, one));)
        if (one->state == DELIVERY_MISSING)
            all[n++] = one;
    qsort(all, n, sizeof(struct delivery *), by_age);
    *ret = all;
    return n;
}

size_t deliveries_count(const struct deliveries *d, enum delivery_state state)
{
    size_t n = state == DELIVERY_SKIPPED ? d->n_malformed : 0;
    for (struct delivery *one = NULL; (one = table_next(&d->by_guid, one));)
        n += one->state == state;
    return n;
}

void deliveries_sum(const struct deliveries *d, bool dry_run, struct buf *to)
{
    /* Every reason that a delivery can be skipped for. */
    static const char *const reasons[] = { "other_event", "other_action", "other_repository",
                                           "body_malformed" };
    const char *separator = " (";
    buf_printf(to,
               "%zu deliveries (%zu attempts): %zu delivered, %zu already here, %zu %s, %zu not "
               "answered yet, %zu skipped",
               table_count(&d->by_guid) + d->n_malformed, d->attempts,
               deliveries_count(d, DELIVERY_DELIVERED), deliveries_count(d, DELIVERY_STORED),
               deliveries_count(d, DELIVERY_PUBLISHED), dry_run ? "to publish" : "published",
               deliveries_count(d, DELIVERY_PENDING), deliveries_count(d, DELIVERY_SKIPPED));
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        size_t n = 0;
        for (struct delivery *one = NULL; (one = table_next(&d->by_guid, one));)
            n += one->state == DELIVERY_SKIPPED && str_is(str_of(one->skipped), reasons[i]);
        if (!n)
            continue;
        buf_printf(to, "%s%s %zu", separator, reasons[i], n);
        separator = ", ";
    }
    if (d->n_malformed)
        buf_printf(to, "%sguid_malformed %zu", separator, d->n_malformed);
    if (d->n_malformed || *separator == ',')
        buf_putc(to, ')');
    buf_printf(to, ", %zu failed", deliveries_count(d, DELIVERY_FAILED));
    if (deliveries_count(d, DELIVERY_MISSING))
        buf_printf(to, ", %zu not looked at", deliveries_count(d, DELIVERY_MISSING));
}

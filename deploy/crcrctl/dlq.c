#include "dlq.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/mem.h"

struct dlq_resolution {
    struct dlq_place of;
    enum dlq_state state;
};

static const char *const state_names[] = {
    [DLQ_OPEN] = "open",
    [DLQ_REPLAYED] = "replayed",
    [DLQ_DROPPED] = "dropped",
};

const char *dlq_state_name(enum dlq_state state)
{
    return state_names[state];
}

bool dlq_place_parse(struct str text, struct dlq_place *ret)
{
    struct str partition;
    int64_t number, offset;

    if (!str_split(&text, '@', &partition) || !str_to_i64(partition, &number) || number < 0 ||
        number > INT32_MAX || !str_to_i64(text, &offset) || offset < 0)
        return false;
    *ret = (struct dlq_place){ (int32_t)number, offset };
    return true;
}

void dlq_init(struct dlq *d)
{
    *d = (struct dlq){ .entries = NULL };
}

void dlq_clear(struct dlq *d)
{
    free(d->entries);
    free(d->resolutions);
    dlq_init(d);
}

/* ---- entries and resolutions ---------------------------------------------------------------- */

static void copy(char *to, size_t size, struct str from)
{
    (void)str_copy(to, size, str_cut(from, size - 1));
}
#define COPY(to, from) copy((to), sizeof(to), (from))

static void add_resolution(struct dlq *d, const struct dlq_resolution *one)
{
    if (d->n_resolutions == d->cap_resolutions) {
        d->cap_resolutions = d->cap_resolutions ? 2 * d->cap_resolutions : 64;
        d->resolutions = mem_resize(d->resolutions, d->cap_resolutions, sizeof(*d->resolutions));
    }
    d->resolutions[d->n_resolutions++] = *one;
}

static void add_entry(struct dlq *d, const struct record *record)
{
    const struct headers *h = &record->headers;

    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->entries = mem_resize(d->entries, d->cap, sizeof(*d->entries));
    }
    struct dlq_entry *e = &d->entries[d->n++];
    *e = (struct dlq_entry){ .at = { record->at.partition, record->at.offset },
                             .parked_ms = headers_get_i64(h, "parked_ms", record->timestamp_ms) };
    COPY(e->class, headers_get(h, "class"));
    COPY(e->source_topic, headers_get(h, "source_topic"));
    COPY(e->key, record->key);
    COPY(e->delivery, headers_get(h, "delivery"));
    COPY(e->repo, headers_get(h, "repo"));
    COPY(e->error, headers_get(h, "error"));
}

void dlq_add(struct dlq *d, const struct record *record)
{
    struct dlq_resolution one = { .state = DLQ_REPLAYED };
    struct str resolves = headers_get(&record->headers, "resolves");

    struct str class = headers_get(&record->headers, "class");

    if (str_is(class, state_names[DLQ_DROPPED]))
        one.state = DLQ_DROPPED;
    /* What was buried keeps the headers that it came with. */
    bool is_ours = one.state == DLQ_DROPPED || str_is(class, state_names[DLQ_REPLAYED]);
    if (is_ours && resolves.ptr && dlq_place_parse(resolves, &one.of))
        add_resolution(d, &one);
    else
        add_entry(d, record);
}

static int compare_places(const struct dlq_place *a, const struct dlq_place *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int by_time(const void *left, const void *right)
{
    const struct dlq_entry *a = left, *b = right;

    if (a->parked_ms != b->parked_ms)
        return a->parked_ms < b->parked_ms ? -1 : 1;
    return compare_places(&a->at, &b->at);
}

static int by_place(const void *left, const void *right)
{
    const struct dlq_resolution *a = left, *b = right;

    return compare_places(&a->of, &b->of);
}

static int by_own_place(const void *left, const void *right)
{
    const struct dlq_entry *a = left, *b = right;

    return compare_places(&a->at, &b->at);
}

void dlq_settle(struct dlq *d)
{
    if (d->n)
        qsort(d->entries, d->n, sizeof(*d->entries), by_own_place);
    if (!d->n_resolutions)
        return;
    qsort(d->resolutions, d->n_resolutions, sizeof(*d->resolutions), by_place);
    for (size_t i = 0; i < d->n; i++) {
        const struct dlq_resolution wanted = { .of = d->entries[i].at };
        const struct dlq_resolution *found =
            bsearch(&wanted, d->resolutions, d->n_resolutions, sizeof(*d->resolutions), by_place);
        d->entries[i].state = found ? found->state : DLQ_OPEN;
    }
}

void dlq_by_time(struct dlq *d)
{
    if (d->n)
        qsort(d->entries, d->n, sizeof(*d->entries), by_time);
}

struct dlq_entry *dlq_find(const struct dlq *d, struct dlq_place at)
{
    const struct dlq_entry wanted = { .at = at };

    return d->n ? bsearch(&wanted, d->entries, d->n, sizeof(*d->entries), by_own_place) : NULL;
}

/* ---- choosing ------------------------------------------------------------------------------- */

bool dlq_matches(const struct dlq_filter *f, const struct topics *topics,
                 const struct dlq_entry *entry)
{
    bool placed = f->n_places == 0;
    struct str source = str_of(entry->source_topic);
    enum topic topic = topics_find(topics, source);

    for (size_t i = 0; i < f->n_places && !placed; i++)
        placed = !compare_places(&f->places[i], &entry->at);
    if (!placed || entry->parked_ms < f->since_ms)
        return false;
    if (f->class.len && !str_is(f->class, entry->class))
        return false;
    if (f->repo.len && !str_eq_nocase(f->repo, str_of(entry->repo)))
        return false;
    if (f->delivery.len && !str_is(f->delivery, entry->delivery))
        return false;
    return !f->source.len || str_eq(f->source, source) ||
           (topic != TOPIC_COUNT && str_is(f->source, topic_base_name(topic)));
}

/* ---- going back ----------------------------------------------------------------------------- */

enum err dlq_unpark(const struct topics *topics, const struct record *record, enum topic *target,
                    struct headers *to, struct why *why)
{
    static const char *const added[] = { "source_topic", "class",         "error", "parked_ms",
                                         "to_topic",     "not_before_ms", "delays" };
    struct str source = headers_get(&record->headers, "source_topic");
    struct str cut = headers_get(&record->headers, "cut");
    enum topic topic = topics_find(topics, source);
    char place[64];

    if (cut.ptr)
        return why_set(why, ERR_REFUSE, "only a part of it is here: %.*s", STR_ARG(cut));
    if (topic >= TOPIC_DELAY_10S && topic <= TOPIC_DELAY_1H) {
        source = headers_get(&record->headers, "to_topic");
        topic = topics_find(topics, source);
    }
    if (topic != TOPIC_EVENTS && topic != TOPIC_CALLBACKS && topic != TOPIC_RECONCILE &&
        topic != TOPIC_RESULTS && !(topic >= TOPIC_DISPATCH_L1 && topic <= TOPIC_DISPATCH_L4))
        return why_set(why, ERR_REFUSE, "it came from '%.*s', where nothing can be put back",
                       STR_ARG(source));
    headers_copy(to, &record->headers);
    for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++)
        headers_remove(to, added[i]);
    if (headers_get(to, "attempt").ptr)
        headers_set(to, "attempt", STR_LIT("1"));
    headers_remove(to, "dlq");
    snprintf(place, sizeof(place), "%" PRId32 "@%" PRId64, record->at.partition, record->at.offset);
    headers_put_copy(to, "dlq", str_of(place));
    *target = topic;
    return OK;
}

void dlq_resolution_headers(const struct record *record, enum dlq_state state, int64_t now_ms,
                            struct headers *to)
{
    static const char *const kept[] = { "event",    "action", "delivery", "pr",
                                        "head_sha", "repo",   "tier",     "source_topic" };
    char place[64];

    headers_init(to);
    snprintf(place, sizeof(place), "%" PRId32 "@%" PRId64, record->at.partition, record->at.offset);
    headers_put_copy(to, "resolves", str_of(place));
    headers_put(to, "class", str_of(state_names[state]));
    headers_put_i64(to, "resolved_ms", now_ms);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        headers_put(to, kept[i], headers_get(&record->headers, kept[i]));
}

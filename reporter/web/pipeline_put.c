#include "pipeline_put.h"

#include <string.h>

#include "../../common/base/json_put.h"

/* Absent or empty: null. */
static void put_text(struct buf *to, const char *name, const char *text)
{
    json_put_text(to, name, *text ? str_of(text) : STR_NONE);
}

/* Begins a list or an object: a member, or with NULL an element. */
static void begin(struct buf *to, const char *name, char bracket)
{
    if (name)
        json_put_name(to, name);
    else
        json_put_comma(to);
    buf_putc(to, bracket);
}

static void put_looked(struct buf *to, const struct pipeline_view *v)
{
    json_put_time(to, "looked_at", v->look->at_ms);
    put_text(to, "error", v->error);
}

/* ---- what waits ------------------------------------------------------------------------------ */

/* Since when it waits, or until when. */
static int64_t since(const struct waiting *w)
{
    return w->due_ms ? w->due_ms : w->written_ms;
}

void waiting_note(struct waiting *w, const struct record *record)
{
    bool delayed = w->topic >= TOPIC_DELAY_10S && w->topic <= TOPIC_DELAY_1H;
    struct waiting found = {
        .topic = w->topic,
        .records = w->records,
        .written_ms = record->timestamp_ms,
        .due_ms = delayed ? headers_get_i64(&record->headers, "not_before_ms", 0) : 0,
        .attempt = headers_get_i64(&record->headers, "attempt", -1),
    };
    if (w->text.offset >= 0 && since(w) <= since(&found))
        return;
    record_text_init(&found.text, record);
    *w = found;
}

/* For how long the oldest has waited; in a delay topic: since its time came. */
static int64_t waited_ms(const struct pipeline_view *v, const struct waiting *w)
{
    int64_t ms = v->look->at_ms - since(w);
    return w->text.offset >= 0 && since(w) > 0 && ms > 0 ? ms : 0;
}

/* The name of a group ends with that of its role. */
static void put_role(struct buf *to, const struct pipeline_view *v, size_t group)
{
    const char *hyphen = strrchr(v->topics->group[group], '-');
    put_text(to, "role", hyphen ? hyphen + 1 : v->topics->group[group]);
}

static void put_waiting(struct buf *to, const struct pipeline_view *v, const struct waiting *w)
{
    begin(to, NULL, '{');
    put_text(to, "topic", v->topics->name[w->topic]);
    json_put_number(to, "records", w->records);
    json_put_seconds(to, "seconds", waited_ms(v, w));
    json_put_name(to, "oldest");
    if (w->text.offset >= 0) {
        buf_putc(to, '{');
        record_text_put(to, &w->text);
        json_put_time(to, "written_at", w->written_ms);
        json_put_time(to, "due_at", w->due_ms);
        json_put_number(to, "attempt", w->attempt);
        buf_putc(to, '}');
    } else {
        buf_puts(to, "null");
    }
    buf_putc(to, '}');
}

static void put_groups(struct buf *to, const struct pipeline_view *v)
{
    begin(to, "groups", '[');
    for (size_t g = 0; g < GROUP_COUNT && v->look->at_ms; g++) {
        size_t n;
        (void)topics_of_group((enum group)g, &n);
        begin(to, NULL, '{');
        put_text(to, "group", v->topics->group[g]);
        put_role(to, v, g);
        begin(to, "topics", '[');
        for (size_t i = 0; i < n; i++)
            put_waiting(to, v, &v->look->waiting[g][i]);
        buf_puts(to, "]}");
    }
    buf_putc(to, ']');
}

static void put_topics(struct buf *to, const struct pipeline_view *v)
{
    begin(to, "topics", '[');
    for (size_t t = 0; t < TOPIC_COUNT && v->look->at_ms; t++) {
        const struct topic_look *topic = &v->look->topics[t];
        begin(to, NULL, '{');
        put_text(to, "topic", v->topics->name[t]);
        json_put_number(to, "partitions", topic->partitions);
        json_put_number(to, "records", topic->records);
        json_put_time(to, "oldest_at", topic->oldest_ms);
        json_put_time(to, "newest_at", topic->newest_ms);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

/* shown: of the newest entries; without, when the newest was parked. open is null while the queue
 * is being read. */
static void put_dlq(struct buf *to, const struct pipeline_view *v, size_t shown)
{
    const struct open_dlq_entry *e = v->dlq ? open_dlq_next(v->dlq, NULL) : NULL;
    bool more = false;
    begin(to, "dlq", '{');
    json_put_number(to, "open", v->dlq ? (int64_t)open_dlq_count(v->dlq, &more) : -1);
    json_put_name(to, "more");
    buf_puts(to, more ? "true" : "false");
    json_put_time(to, "newest_at", e ? e->parked_ms : 0);
    if (shown)
        begin(to, "entries", '[');
    for (size_t i = 0; e && i < shown; i++, e = open_dlq_next(v->dlq, e)) {
        begin(to, NULL, '{');
        record_text_put(to, &e->text);
        json_put_time(to, "parked_at", e->parked_ms);
        buf_putc(to, '}');
    }
    buf_puts(to, shown ? "]}" : "}");
}

void pipeline_put(struct buf *to, const struct pipeline_view *v)
{
    buf_putc(to, '{');
    put_looked(to, v);
    put_groups(to, v);
    json_put_time(to, "ends_at", v->look->ends_ms);
    put_topics(to, v);
    put_dlq(to, v, PIPELINE_DLQ_SHOWN);
    buf_putc(to, '}');
}

/* ---- the cards ------------------------------------------------------------------------------- */

static void put_roles(struct buf *to, const struct pipeline_view *v)
{
    begin(to, "roles", '[');
    for (size_t g = 0; g < GROUP_COUNT && v->look->at_ms; g++) {
        int64_t records = 0, ms = 0;
        size_t n;
        (void)topics_of_group((enum group)g, &n);
        for (const struct waiting *w = v->look->waiting[g]; w < v->look->waiting[g] + n; w++) {
            records += w->records;
            ms = waited_ms(v, w) > ms ? waited_ms(v, w) : ms;
        }
        begin(to, NULL, '{');
        put_role(to, v, g);
        json_put_number(to, "records", records);
        json_put_seconds(to, "seconds", ms);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

static void put_dispatches(struct buf *to, const struct pipeline_view *v)
{
    struct dispatch_sums sums = { -1, -1, -1, -1 };
    struct broken_downstream broken[PIPELINE_BROKEN_SHOWN];
    size_t n = v->day ? dispatch_day_broken(v->day, v->now_ms, broken, PIPELINE_BROKEN_SHOWN) : 0;
    if (v->day)
        sums = dispatch_day_sums(v->day, v->now_ms);
    begin(to, "dispatches", '{');
    json_put_number(to, "dispatched", sums.dispatched);
    json_put_number(to, "failed", sums.failed);
    json_put_seconds(to, "p50_seconds", sums.p50_ms);
    json_put_seconds(to, "p99_seconds", sums.p99_ms);
    buf_putc(to, '}');
    begin(to, "breakers", '{');
    json_put_number(to, "open", v->day ? (int64_t)n : -1);
    begin(to, "downstreams", '[');
    for (size_t i = 0; i < n && i < PIPELINE_BROKEN_SHOWN; i++) {
        begin(to, NULL, '{');
        put_text(to, "repo", broken[i].repo);
        json_put_time(to, "answered_at", broken[i].answered_ms);
        json_put_time(to, "put_off_at", broken[i].put_off_ms);
        buf_putc(to, '}');
    }
    buf_puts(to, "]}");
}

static void put_budget(struct buf *to, const struct pipeline_view *v)
{
    begin(to, "budget", '{');
    put_text(to, "error", v->redis_error);
    json_put_time(to, "limited_until", v->limited_until_ms);
    begin(to, "buckets", '[');
    for (size_t b = 0; !*v->redis_error && b < BUDGET_BUCKETS; b++) {
        const struct bucket_look *bucket = &v->buckets[b];
        if (bucket->of < 0)
            continue;
        begin(to, NULL, '{');
        put_text(to, "bucket", budget_bucket_names[b]);
        put_text(to, "account", bucket->account);
        json_put_number(to, "of", bucket->of);
        json_put_number(to, "left", bucket->left);
        json_put_number(to, "left_l4", bucket->left_l4);
        json_put_number(to, "left_rest", bucket->left_rest);
        buf_putc(to, '}');
    }
    buf_puts(to, "]}");
}

void health_put(struct buf *to, const struct pipeline_view *v)
{
    buf_putc(to, '{');
    put_looked(to, v);
    put_roles(to, v);
    put_dispatches(to, v);
    put_budget(to, v);
    put_dlq(to, v, 0);
    begin(to, "allowlist", '{');
    put_text(to, "sha", v->sha);
    json_put_number(to, "repositories", v->repositories);
    json_put_time(to, "fetched_at", v->fetched_ms);
    put_text(to, "error", v->refused);
    buf_puts(to, "}}");
}

#include "pipeline_put.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/json_put.h"

#define OLDEST_MAX 32768 /* each byte of it may be escaped */

/* Members of a record, in an open object: its position and its downstreams. */
static void put_record(struct buf *to, const char *position, const struct dlq_entry *e)
{
    json_put_string(to, "position", position);
    json_put_string(to, "delivery", e->delivery);
    json_put_string(to, "repos", e->repos);
    json_put_string(to, "key", e->key);
    json_put_string(to, "error", e->error);
    json_put_string(to, "class", e->class);
    json_put_string(to, "source_topic", e->source_topic);
    json_put_string(to, "to_topic", e->to_topic);
}

/* ---- what waits ------------------------------------------------------------------------------ */

void topic_look_note(struct topic_look *t, const struct record *record)
{
    int64_t due_ms = t->delayed ? headers_get_i64(&record->headers, "not_before_ms", 0) : 0;
    int64_t since_ms = due_ms ? due_ms : record->timestamp_ms;
    struct dlq_entry read = { .state = DLQ_OPEN };
    char position[DLQ_POSITION_SIZE];
    struct buf text;
    if (record->timestamp_ms > t->newest_ms)
        t->newest_ms = record->timestamp_ms;
    if (t->oldest && t->since_ms <= since_ms)
        return;
    buf_init(&text, OLDEST_MAX);
    buf_putc(&text, '{');
    dlq_entry_read(&read, record->timestamp_ms, record->key, &record->headers);
    dlq_position_text((struct dlq_position){ record->at.partition, record->at.offset }, position);
    put_record(&text, position, &read);
    dlq_entry_clear(&read);
    json_put_time(&text, "written_at", record->timestamp_ms);
    json_put_time(&text, "due_at", due_ms);
    json_put_number(&text, "attempt", headers_get_i64(&record->headers, "attempt", -1));
    buf_putc(&text, '}');
    t->since_ms = since_ms;
    free(t->oldest);
    t->oldest = buf_take(&text, NULL);
}

void pipeline_look_init(struct pipeline_look *look)
{
    *look = (struct pipeline_look){ 0 };
    for (size_t t = 0; t < TOPIC_COUNT; t++)
        look->of[GROUP_DELAY][t].delayed = true;
}

void pipeline_look_begin(struct pipeline_look *look, bool ends)
{
    for (size_t g = 0; g <= LOOK_ALL; g++)
        for (size_t i = 0; i < TOPIC_COUNT; i++) {
            struct topic_look *t = &look->of[g][i];
            t->partitions = t->records = 0;
            if (g == LOOK_ALL && !ends)
                continue;
            t->since_ms = t->newest_ms = 0;
            free(t->oldest);
            t->oldest = NULL;
        }
}

void pipeline_look_clear(struct pipeline_look *look)
{
    pipeline_look_begin(look, true);
}

static void put_group(struct buf *pipeline, struct buf *health, const struct pipeline_look *look,
                      const struct topics *topics, enum group group)
{
    const char *name = topics->group[group], *hyphen = strrchr(name, '-');
    struct str role = str_of(hyphen ? hyphen + 1 : name); /* the name of a group ends with it */
    int64_t records = 0, longest_ms = 0;
    size_t n;
    const enum topic *reads = topics_of_group(group, &n);
    json_put_begin(pipeline, NULL, '{');
    json_put_text(pipeline, "group", str_of(name));
    json_put_text(pipeline, "role", role);
    json_put_begin(pipeline, "topics", '[');
    for (size_t i = 0; i < n; i++) {
        const struct topic_look *t = &look->of[group][reads[i]];
        bool waits = t->since_ms > 0 && look->at_ms > t->since_ms;
        int64_t ms = waits ? look->at_ms - t->since_ms : 0;
        records += t->records;
        longest_ms = ms > longest_ms ? ms : longest_ms;
        json_put_begin(pipeline, NULL, '{');
        json_put_text(pipeline, "topic", str_of(topics->name[reads[i]]));
        json_put_number(pipeline, "records", t->records);
        json_put_seconds(pipeline, "seconds", ms);
        json_put_name(pipeline, "oldest");
        buf_puts(pipeline, t->oldest ? t->oldest : "null");
        buf_putc(pipeline, '}');
    }
    buf_puts(pipeline, "]}");
    json_put_begin(health, NULL, '{');
    json_put_text(health, "role", role);
    json_put_number(health, "records", records);
    json_put_seconds(health, "seconds", longest_ms);
    buf_putc(health, '}');
}

void pipeline_look_put(struct buf *pipeline, struct buf *health, const struct pipeline_look *look,
                       const struct topics *topics)
{
    json_put_time(pipeline, "looked_at", look->at_ms);
    json_put_begin(pipeline, "groups", '[');
    json_put_begin(health, "roles", '[');
    for (size_t g = 0; g < GROUP_COUNT && look->at_ms; g++)
        put_group(pipeline, health, look, topics, (enum group)g);
    buf_putc(pipeline, ']');
    buf_putc(health, ']');
    json_put_time(pipeline, "ends_at", look->ends_ms);
    json_put_begin(pipeline, "topics", '[');
    for (size_t i = 0; i < TOPIC_AUDIT && look->at_ms; i++) {
        const struct topic_look *t = &look->of[LOOK_ALL][i];
        json_put_begin(pipeline, NULL, '{');
        json_put_text(pipeline, "topic", str_of(topics->name[i]));
        json_put_number(pipeline, "partitions", t->partitions);
        json_put_number(pipeline, "records", t->records);
        json_put_time(pipeline, "oldest_at", t->since_ms);
        json_put_time(pipeline, "newest_at", t->newest_ms);
        buf_putc(pipeline, '}');
    }
    buf_putc(pipeline, ']');
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void put_dlq(struct buf *to, const struct dlq *d, size_t shown)
{
    const struct dlq_entry *e = d ? dlq_next(d, NULL) : NULL;
    json_put_begin(to, "dlq", '{');
    json_put_number(to, "open", d ? (int64_t)dlq_count(d) : -1);
    json_put_name(to, "more");
    buf_puts(to, d && d->more ? "true" : "false");
    json_put_time(to, "newest_at", e ? e->parked_ms : 0);
    if (shown)
        json_put_begin(to, "entries", '[');
    for (size_t i = 0; e && i < shown; i++, e = dlq_next(d, e)) {
        json_put_begin(to, NULL, '{');
        put_record(to, e->position, e);
        json_put_time(to, "parked_at", e->parked_ms);
        buf_putc(to, '}');
    }
    buf_puts(to, shown ? "]}" : "}");
}

static void put_redis(struct buf *to, const struct pipeline_view *v)
{
    json_put_begin(to, "redis", '{');
    json_put_string(to, "error", v->redis_error);
    json_put_time(to, "since", v->redis_since_ms);
    buf_putc(to, '}');
}

/* When the class has a token again; null: it has one. In steps of 10 s: open pages follow it. */
static void put_refill(struct buf *to, const char *name, int64_t now_ms, int64_t wait_us)
{
    json_put_time(to, name, wait_us > 0 ? ((now_ms + wait_us / 1000) / 10000 + 1) * 10000 : 0);
}

/* Of each bucket that of the account that has least. In tokens. */
static void put_budget(struct buf *to, const struct pipeline_view *v)
{
    int64_t limited_us = 0;
    for (size_t i = 0; i < v->n_accounts; i++)
        limited_us = v->used[i].limited_us > limited_us ? v->used[i].limited_us : limited_us;
    json_put_begin(to, "budget", '{');
    json_put_string(to, "error", v->n_accounts ? "" : v->redis_error);
    json_put_time(to, "limited_until", limited_us ? v->now_ms + limited_us / 1000 : 0);
    json_put_begin(to, "buckets", '[');
    for (enum budget_bucket b = 0; v->n_accounts && b < BUDGET_BUCKETS; b++) {
        size_t least = 0;
        for (size_t i = 1; i < v->n_accounts; i++)
            least = v->used[i].used_us[b] > v->used[least].used_us[b] ? i : least;
        int64_t used_us = v->used[least].used_us[b];
        if (!v->rules->limit[b])
            continue;
        json_put_begin(to, NULL, '{');
        json_put_string(to, "bucket", budget_bucket_names[b]);
        json_put_text(to, "account", v->accounts[least]);
        json_put_number(to, "of", budget_left(v->rules, b, BUDGET_AGGREGATE, 0));
        json_put_number(to, "left", budget_left(v->rules, b, BUDGET_AGGREGATE, used_us));
        json_put_number(to, "left_l4", budget_left(v->rules, b, BUDGET_L4, used_us));
        json_put_number(to, "left_rest", budget_left(v->rules, b, BUDGET_REST, used_us));
        json_put_number(to, "limit", v->rules->limit[b]);
        put_refill(to, "l4_at", v->now_ms, budget_refill_us(v->rules, b, BUDGET_L4, used_us));
        put_refill(to, "rest_at", v->now_ms, budget_refill_us(v->rules, b, BUDGET_REST, used_us));
        put_refill(to, "full_at", v->now_ms, used_us);
        buf_putc(to, '}');
    }
    buf_puts(to, "]}");
}

void pipeline_put(struct buf *to, const struct pipeline_view *v)
{
    buf_putc(to, '{');
    buf_put(to, buf_str(v->pipeline));
    json_put_string(to, "error", v->error);
    put_redis(to, v);
    put_budget(to, v);
    put_dlq(to, v->dlq, PIPELINE_DLQ_SHOWN);
    buf_putc(to, '}');
}

void health_put(struct buf *to, const struct pipeline_view *v)
{
    buf_putc(to, '{');
    buf_put(to, buf_str(v->health));
    json_put_time(to, "looked_at", *v->error ? v->looked_ms : 0);
    json_put_string(to, "error", v->error);
    dispatch_day_put(to, v->day, v->now_ms);
    put_redis(to, v);
    put_budget(to, v);
    canary_put(to, v->canary);
    put_dlq(to, v->dlq, 0);
    json_put_begin(to, "allowlist", '{');
    json_put_bool(to, "caught_up", v->caught_up);
    json_put_string(to, "sha", v->sha);
    json_put_number(to, "repositories", v->repositories);
    json_put_time(to, "fetched_at", v->fetched_ms);
    json_put_string(to, "error", v->refused);
    buf_puts(to, "}}");
}

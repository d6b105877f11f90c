/* One post at a time for each job, many jobs at once; while the HUD is away everything stands
 * still, in hand and in the topic, and goes on where it stood. */
#include "forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "forward_body.h"

#define POSTS_MAX      16  /* at the same time */
#define IN_HAND_MAX    500 /* over all partitions */
#define BODY_MAX_BYTES (2u << 20)
#define TICK_MS        1000
#define FLUSH_MS       5000
/* After a standstill: until Kafka had time to say which partitions are another's by now. That takes
 * a heartbeat, 1.5 s, and what is in hand of them may be older than what the HUD was told. */
#define HEAR_MS        3000

static struct lane *lane_of(struct forward *f, struct str key)
{
    struct lane *lane;
    HASH_FIND(hh, f->lanes, key.ptr, key.len, lane);
    if (lane)
        return lane;
    lane = mem_alloc(1, sizeof(*lane));
    lane->key = str_dup(key);
    lane->key_len = key.len;
    HASH_ADD_KEYPTR(hh, f->lanes, lane->key, key.len, lane);
    return lane;
}

static void record_take(struct forward *f, struct record *record)
{
    struct result_record result;
    struct why why;
    if (!record->value.ptr) { /* a tombstone: the row was taken back */
        record_done(record);
        return;
    }
    struct post *p = mem_alloc(1, sizeof(*p));
    p->forward = f;
    p->record = record;
    buf_init(&p->body, BODY_MAX_BYTES);
    p->lane = lane_of(f, record->key.ptr ? record->key : STR_LIT(""));
    DL_APPEND(p->lane->posts, p);
    if (result_record_from_json(record->value, &result, &why) != OK) {
        post_refuse(p, "poison", why.text);
        return;
    }
    forward_body(&result, &p->body);
    result_record_clear(&result);
    if (buf_full(&p->body))
        post_refuse(p, "refused", "the result is larger than 2 MiB");
}

static void records_read(struct forward *f)
{
    struct record *record;
    bool pause = topic_reader_in_hand(f->reader) >= IN_HAND_MAX;
    if (pause != f->paused)
        topic_reader_pause(f->reader, pause);
    f->paused = pause;
    while ((record = topic_reader_next(f->reader, 0))) {
        record_take(f, record);
        if (topic_reader_in_hand(f->reader) >= IN_HAND_MAX)
            return;
    }
}

/* Starts the first of each lane. While the HUD is away one post at a time asks whether it is back.
 */
static void posts_start(struct forward *f)
{
    struct lane *lane, *next;
    int64_t now = clock_mono_ms();
    bool waiting = now < f->not_before_ms || now < f->standstill.ended_ms + HEAR_MS;
    size_t most = f->away ? 1 : POSTS_MAX;
    role_waiting(f->role, f->away);
    HASH_ITER(hh, f->lanes, lane, next)
    {
        struct post *p = lane->posts;
        if (p->state != POST_QUEUED)
            continue;
        if (p->class)
            post_park(p);
        else if (!waiting && now >= p->not_before_ms && f->n_posting < most)
            post_start(p);
    }
}

static bool concerns(const struct post *p, const struct topic_position *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p->record && p->record->at.partition == at[i].partition)
            return true;
    return false;
}

static void lane_drop(struct lane *lane, const struct topic_position *at, size_t n)
{
    struct post *p, *next;
    for (p = lane->posts; p; p = next) { /* the lane goes with its last post */
        next = p->next;
        if (!concerns(p, at, n))
            continue;
        record_drop(p->record);
        p->record = NULL;
        if (p->state == POST_QUEUED)
            post_free(p);
    }
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms)
{
    struct forward *f = opaque;
    struct lane *lane, *next;
    while (f->n_posting + f->n_parking > 0 && clock_mono_ms() < deadline_mono_ms) {
        http_client_poll(f->client, NULL, 50);
        topic_writer_poll(f->writer, 0);
        role_alive(f->role);
    }
    HASH_ITER(hh, f->lanes, lane, next)
    {
        lane_drop(lane, partitions, n);
    }
}

static void turn(struct forward *f)
{
    role_alive(f->role);
    standstill_look(&f->standstill, clock_mono_ms());
    wake_reset(role_wake(f->role));
    records_read(f);
    posts_start(f);
    topic_writer_poll(f->writer, 0);
    role_reads(f->role, f->reader);
    http_client_poll(f->client, role_wake(f->role), TICK_MS);
}

static void forward_close(struct forward *f)
{
    struct why why;
    struct lane *lane, *next;
    if (f->writer && topic_writer_flush(f->writer, FLUSH_MS, &why) != OK)
        log_warn("forward_flush_incomplete", LOG_STR("error", str_of(why.text)));
    topic_reader_free(f->reader);
    http_client_free(f->client);
    topic_writer_free(f->writer);
    HASH_ITER(hh, f->lanes, lane, next)
    {
        struct post *p, *after;
        for (p = lane->posts; p; p = after) {
            after = p->next;
            post_free(p);
        }
    }
}

static enum err forward_open(struct forward *f, struct why *why)
{
    const struct reporter *r = f->reporter;
    const char *const inputs[] = { r->topics.name[TOPIC_RESULTS] };
    const char *const all[] = { inputs[0], r->topics.name[TOPIC_DLQ] };
    const struct http_client_options client = { .user_agent = "crcr-reporter",
                                                .only_fresh = true,
                                                .ca_file = r->ca_file,
                                                .allow_http = r->allow_http };
    const struct topic_writer_options writer = { .kafka = r->kafka, .wake = role_wake(f->role) };
    const struct topic_reader_options reader = {
        .kafka = r->kafka,
        .group = r->topics.group[GROUP_FORWARD],
        .topics = inputs,
        .n_topics = 1,
        .wake = role_wake(f->role),
        .revoked = revoked,
        .opaque = f,
    };
    enum err err = http_client_new(&f->client, &client, why);
    if (err == OK)
        err = topic_writer_new(&f->writer, &writer, why);
    if (err == OK)
        err = role_wait_topics(f->role, f->writer, all, 2, why);
    if (err == OK)
        err = topic_reader_new(&f->reader, &reader, why);
    return err;
}

/* No HUD is told of: nothing to do, and nothing wrong. */
static enum err forward_off(struct role_ctx *role)
{
    log_info("forward_off", LOG_STR("reason", STR_LIT("HUD_API_URL is empty")));
    role_ready(role, NULL);
    role_waiting(role, true);
    while (!role_stopping(role)) {
        role_alive(role);
        wake_reset(role_wake(role));
        if (!role_stopping(role))
            wake_wait(role_wake(role), TICK_MS);
    }
    return OK;
}

enum err forward_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct forward f = { .reporter = reporter,
                         .role = role,
                         .standstill = { .seen_ms = clock_mono_ms() } };
    const char *base = config_text(role_config(role), "HUD_API_URL");
    if (!base || !*base)
        return forward_off(role);
    f.bot_key = config_text(role_config(role), "HUD_BOT_KEY");
    f.max_retries = config_number(role_config(role), "HUD_MAX_RETRIES");
    snprintf(f.url, sizeof(f.url), "%s/crcr/results", base);
    role_declare_dlq(role, METRIC_DLQ, STR_LIT("forward"));
    posts_declare(role_metrics(role));
    enum err err = forward_open(&f, why);
    if (err == OK)
        role_ready(role, NULL);
    while (err == OK && !role_stopping(role)) {
        turn(&f);
        if (topic_reader_fatal(f.reader, why) || topic_writer_fatal(f.writer, why))
            err = ERR_STOP;
    }
    forward_close(&f);
    return err;
}

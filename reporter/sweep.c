/* The role sweep: jobs that have been in progress for too long → callbacks. Any number of replicas;
 * a lease keeps two from taking the same job.
 *
 *   crcr:zombies ──leased──▶ callbacks ──acknowledged──▶ off crcr:zombies
 *        ▲                       │                            └── the fold does the rest
 *        └── the lease ran out ◀─┘ not acknowledged, or killed: the same callback again */
#include "sweep.h"

#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/topic_writer.h"
#include "../common/view/zombies.h"
#include "sweep_callback.h"

#define BATCH    100  /* jobs leased at a time */
#define AWAY_MS  1000 /* between two looks while Redis is away */
#define FLUSH_MS 1000
#define ROLE     METRIC_LABELS(STR_LIT("sweep"))

/* One zombie on its way into the topic; it stays until it is reported. */
struct errand {
    const struct zombie *zombie;
    bool stored;
};

/* ---- Redis ----------------------------------------------------------------------------------- */

/* A Redis that refuses is waited out as one that is away: it would refuse every job alike. */
void sweep_redis_seen(struct sweep *s, bool up, const char *reason)
{
    if (up != s->redis_away)
        return;
    s->redis_away = !up;
    role_waiting(s->role, !up);
    role_ready(s->role, up ? NULL : "Redis is away");
    metrics_set(role_metrics(s->role), METRIC_REDIS_UP, ROLE, up);
    if (up)
        log_info("redis_back", LOG_STR("role", STR_LIT("sweep")));
    else
        log_warn("redis_away", LOG_STR("role", STR_LIT("sweep")), LOG_STR("error", str_of(reason)));
}

void sweep_lag(struct sweep *s)
{
    role_lag(s->role, (int64_t)(s->lost_jobs + s->lost_due));
}

bool sweep_may_write(struct sweep *s)
{
    struct why why;
    return !role_stopping(s->role) && !topic_writer_fatal(s->writer, &why);
}

static void zombie_done(struct sweep *s, const struct zombie *zombie)
{
    struct why why;
    if (zombie_remove(s->redis, zombie, &why) != OK)
        sweep_redis_seen(s, false,
                         why.text); /* the same callback again when the lease has run out */
}

/* ---- one batch ------------------------------------------------------------------------------- */

static void written(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct errand *errand = opaque;
    (void)at;
    errand->stored = err == OK;
    if (err != OK)
        log_warn("sweep_not_published", LOG_STR("error", str_of(reason)));
}

static void publish(struct sweep *s, struct errand *errand)
{
    const struct result_record *job = &errand->zombie->job;
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) body;
    struct headers headers;
    struct why why;
    buf_init(&key, DELIVERY_MAX + 1 + REPO_MAX);
    buf_init(&body, SWEEP_BODY_MAX);
    sweep_callback_key(job, &key);
    sweep_callback_headers(job, errand->zombie->deadline_ms, &headers);
    sweep_callback_body(job, &body);
    if (topic_writer_put(s->writer, s->reporter->topics.name[TOPIC_CALLBACKS], buf_str(&key),
                         buf_str(&body), &headers, written, errand, &why) != OK)
        log_warn("sweep_not_published", LOG_STR("error", str_of(why.text)));
}

static void timed_out(struct sweep *s, const struct zombie *zombie)
{
    const struct result_record *job = &zombie->job;
    metrics_add(role_metrics(s->role), METRIC_SWEEP_TIMED_OUT, NULL, 1);
    role_progress(s->role);
    log_info("timed_out", LOG_STR("delivery", str_of(job->delivery_id)),
             LOG_STR("repo", str_of(job->repo)), LOG_STR("job", str_of(job->job_name)),
             LOG_STR("run_attempt", str_of(job->run_attempt)));
    zombie_done(s, zombie);
}

/* Every record is reported within the writer's 7 s, also while the brokers are away: nothing of
 * errands is freed before. */
static void settle(struct sweep *s)
{
    struct why why;
    while (topic_writer_flush(s->writer, FLUSH_MS, &why) != OK)
        role_alive(s->role);
}

/* Gives how many were not stored. */
static size_t batch_publish(struct sweep *s, const struct zombie_list *list)
{
    struct errand *errands = mem_alloc(list->n, sizeof(*errands));
    size_t n = 0, lost = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct zombie *zombie = &list->at[i];
        if (!sweep_callback_possible(&zombie->job)) {
            log_error("zombie_dropped", LOG_STR("key", str_of(zombie->job.key)));
            zombie_done(s, zombie);
            continue;
        }
        errands[n].zombie = zombie;
        publish(s, &errands[n++]);
    }
    settle(s);
    for (size_t i = 0; i < n; i++) {
        lost += !errands[i].stored;
        if (errands[i].stored)
            timed_out(s, errands[i].zombie);
    }
    free(errands);
    return lost;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Batch after batch, until none is left to take. */
static void sweep_all(struct sweep *s)
{
    size_t n, lost = 0;
    s->next_ms = clock_mono_ms() + s->period_ms;
    do {
        struct zombie_list list;
        struct why why;
        int64_t past = 0;
        if (zombies_take(s->redis, clock_wall_ms(), BATCH, &list, &past, &why) != OK) {
            sweep_redis_seen(s, false, why.text);
            break;
        }
        sweep_redis_seen(s, true, NULL);
        metrics_set(role_metrics(s->role), METRIC_ZOMBIES, NULL, (double)past);
        n = list.n;
        if (n > 0)
            lost += batch_publish(s, &list);
        zombie_list_clear(&list);
        role_alive(s->role);
    } while (n > 0 && !s->redis_away && sweep_may_write(s));
    s->lost_jobs = lost;
    sweep_lag(s);
    if (s->redis_away)
        s->next_ms = clock_mono_ms() + AWAY_MS;
    else if (lost > 0 && s->period_ms > ZOMBIE_LEASE_MS)
        s->next_ms = clock_mono_ms() + ZOMBIE_LEASE_MS;
}

static void turn(struct sweep *s)
{
    struct wake *wake = role_wake(s->role);
    role_alive(s->role);
    wake_reset(wake);
    topic_writer_poll(s->writer, 0); /* sees a producer that is broken, and makes it anew */
    if (sweep_may_write(s) && clock_mono_ms() >= s->next_ms)
        sweep_all(s);
    if (sweep_may_write(s) && clock_mono_ms() >= s->next_due_ms)
        sweep_due(s);
    if (!sweep_may_write(s))
        return;
    int64_t next = s->next_ms < s->next_due_ms ? s->next_ms : s->next_due_ms;
    int64_t left = next - clock_mono_ms();
    if (left > 0)
        wake_wait(wake, (int)left);
}

static enum err sweep_open(struct sweep *s, struct why *why)
{
    const struct reporter *r = s->reporter;
    const char *const topics[] = { r->topics.name[TOPIC_CALLBACKS],
                                   r->topics.name[TOPIC_RECONCILE] };
    const struct topic_writer_options writer = { .kafka = r->kafka };
    s->period_ms = config_number(role_config(s->role), "CRCR_SWEEP_SECONDS") * 1000;
    enum err err = redis_new(&s->redis, &r->redis, why);
    if (err == OK)
        err = topic_writer_new(&s->writer, &writer, why);
    if (err == OK)
        err = role_wait_topics(s->role, s->writer, topics, 2, why);
    return err;
}

enum err sweep_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct sweep s = { .reporter = reporter, .role = role };
    enum err err = sweep_open(&s, why);
    if (err == OK) {
        role_ready(role, NULL);
        metrics_set(role_metrics(role), METRIC_REDIS_UP, ROLE, 1);
    }
    while (err == OK && !role_stopping(role)) {
        turn(&s);
        if (topic_writer_fatal(s.writer, why))
            err = ERR_STOP;
    }
    topic_writer_free(s.writer);
    redis_free(s.redis);
    return err;
}

#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../io/http_server.h"
#include "../io/topic_writer.h"
#include "daemon_private.h"

/* Longer than a session: what the role reads may be another's by now. */
#define PAUSED_MS        6000
/* Of the topics that a role waits for at its start. */
#define MISSING_GRACE_MS 10000
#define AGAIN_MS         500
#define ASK_MS           2000
#define REPORT_MS        30000
#define LEAVE_TURN_MS    200

enum err role_init(struct role_ctx *r, const struct role *role, struct daemon_ctx *daemon,
                   struct why *why)
{
    enum err err = wake_init(&r->wake, why);
    if (err)
        return err;
    r->role = role;
    r->daemon = daemon;
    pthread_mutex_init(&r->lock, NULL);
    health_init(&r->health, clock_mono_ms());
    snprintf(r->not_ready, sizeof(r->not_ready), "starting");
    return OK;
}

void role_clear(struct role_ctx *r)
{
    if (!r->role)
        return;
    wake_clear(&r->wake);
    pthread_mutex_destroy(&r->lock);
    r->role = NULL;
}

/* A role ends when it has to; one that ends by itself takes the daemon with it, so that it is
 * started again rather than half alive. */
static void *role_thread(void *opaque)
{
    struct role_ctx *r = opaque;
    struct why why = { "" };
    enum err err = r->role->run(r, r->opaque, &why);
    if (!err && !role_stopping(r))
        err = why_set(&why, ERR_STOP, "it ended without being asked to");
    if (err)
        log_error("role_failed", LOG_STR("role", str_of(r->role->name)),
                  LOG_STR("kind", str_of(err_name(err))), LOG_STR("reason", str_of(why.text)));
    else
        log_info("role_stopped", LOG_STR("role", str_of(r->role->name)));
    pthread_mutex_lock(&r->lock);
    r->health.ended = true;
    r->result = err;
    atomic_store(&r->failed, !!err);
    pthread_mutex_unlock(&r->lock);
    if (err)
        stop_ask(r->daemon->stop, "role failed");
    return NULL;
}

enum err role_start(struct role_ctx *r, void *opaque, struct why *why)
{
    r->opaque = opaque;
    pthread_mutex_lock(&r->lock);
    health_init(&r->health, clock_mono_ms());
    pthread_mutex_unlock(&r->lock);
    if (pthread_create(&r->thread, NULL, role_thread, r) != 0)
        return why_set(why, ERR_STOP, "no thread for the role %s", r->role->name);
    r->running = true;
    char name[16]; /* the kernel's limit */
    snprintf(name, sizeof(name), "%.15s", r->role->name);
    pthread_setname_np(r->thread, name);
    return OK;
}

enum err role_join(struct role_ctx *r)
{
    if (!r->running)
        return OK;
    pthread_join(r->thread, NULL);
    r->running = false;
    return r->result;
}

struct health role_health_now(struct role_ctx *r)
{
    pthread_mutex_lock(&r->lock);
    struct health health = r->health;
    pthread_mutex_unlock(&r->lock);
    return health;
}

enum err role_check_health(struct role_ctx *r, struct why *why)
{
    struct health health = role_health_now(r);
    enum err err = health_check(&health, clock_mono_ms(), why);
    return err ? why_prefix(why, err, "%s", r->role->name) : OK;
}

enum err role_check_ready(struct role_ctx *r, struct why *why)
{
    enum err err = OK;
    pthread_mutex_lock(&r->lock);
    if (r->not_ready[0])
        err = why_set(why, ERR_RETRY, "%s: %s", r->role->name, r->not_ready);
    pthread_mutex_unlock(&r->lock);
    return err;
}

const char *role_name(const struct role_ctx *r)
{
    return r->role->name;
}

const struct config *role_config(const struct role_ctx *r)
{
    return daemon_config(r->daemon);
}

struct metrics *role_metrics(const struct role_ctx *r)
{
    return daemon_metrics(r->daemon);
}

struct daemon_ctx *role_daemon(const struct role_ctx *r)
{
    return r->daemon;
}

struct wake *role_wake(struct role_ctx *r)
{
    return &r->wake;
}

bool role_stopping(const struct role_ctx *r)
{
    return daemon_stopping(r->daemon);
}

void role_alive(struct role_ctx *r)
{
    pthread_mutex_lock(&r->lock);
    int64_t now = clock_mono_ms(), since_ms = now - r->health.alive_ms;
    r->health.alive_ms = now;
    pthread_mutex_unlock(&r->lock);
    if (since_ms > PAUSED_MS)
        log_warn("role_paused", LOG_STR("role", str_of(r->role->name)), LOG_INT("ms", since_ms));
}

void role_progress(struct role_ctx *r)
{
    pthread_mutex_lock(&r->lock);
    r->health.progress_ms = clock_mono_ms();
    pthread_mutex_unlock(&r->lock);
}

void role_lag(struct role_ctx *r, int64_t lag)
{
    pthread_mutex_lock(&r->lock);
    health_lag(&r->health, lag, clock_mono_ms());
    pthread_mutex_unlock(&r->lock);
}

void role_declare_dlq(struct role_ctx *r, size_t family, struct str role)
{
    static const char *const classes[] = { "poison", "refused", "exhausted" };
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        metrics_add(role_metrics(r), family, METRIC_LABELS(role, str_of(classes[i])), 0);
}

static void log_share(const struct role_ctx *r, const struct topic_reader_state *was,
                      const struct topic_reader_state *is)
{
    struct str role = str_of(r->role->name);
    if (is->lost != was->lost)
        log_warn("partitions_lost", LOG_STR("role", role),
                 LOG_INT("lost", (int64_t)(is->lost - was->lost)),
                 LOG_INT("now", (int64_t)is->now));
    else if (is->taken != was->taken || is->given != was->given)
        log_info("partitions_moved", LOG_STR("role", role),
                 LOG_INT("taken", (int64_t)(is->taken - was->taken)),
                 LOG_INT("given", (int64_t)(is->given - was->given)),
                 LOG_INT("now", (int64_t)is->now));
}

struct topic_reader_state role_state_now(struct role_ctx *r)
{
    pthread_mutex_lock(&r->lock);
    struct topic_reader_state state = r->state;
    pthread_mutex_unlock(&r->lock);
    return state;
}

size_t role_idle_now(struct role_ctx *r, int64_t before_ms, struct idle_partition *ret)
{
    size_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n_idle; i++)
        if (r->idle[i].since_ms <= before_ms)
            ret[n++] = r->idle[i];
    pthread_mutex_unlock(&r->lock);
    return n;
}

void role_reads(struct role_ctx *r, struct topic_reader *reader)
{
    struct topic_reader_state state = topic_reader_state(reader);
    struct topic_idle idle[ROLE_IDLE_MAX];
    size_t n_idle = topic_reader_idle(reader, idle, ROLE_IDLE_MAX);
    log_share(r, &r->state, &state);
    pthread_mutex_lock(&r->lock);
    r->state = state;
    r->n_idle = n_idle;
    for (size_t i = 0; i < n_idle; i++) {
        r->idle[i] = (struct idle_partition){ .partition = idle[i].at.partition,
                                              .offset = idle[i].at.offset,
                                              .since_ms = idle[i].since_ms };
        str_copy(r->idle[i].topic, sizeof(r->idle[i].topic), str_of(idle[i].at.topic));
    }
    health_lag(&r->health, state.lag, clock_mono_ms());
    health_oldest(&r->health, state.oldest_ms);
    pthread_mutex_unlock(&r->lock);
}

void role_waiting(struct role_ctx *r, bool waiting)
{
    pthread_mutex_lock(&r->lock);
    health_waiting(&r->health, waiting, clock_mono_ms());
    pthread_mutex_unlock(&r->lock);
}

void role_ready(struct role_ctx *r, const char *reason_not_ready)
{
    pthread_mutex_lock(&r->lock);
    snprintf(r->not_ready, sizeof(r->not_ready), "%s", reason_not_ready ? reason_not_ready : "");
    pthread_mutex_unlock(&r->lock);
}

enum err role_wait_topics(struct role_ctx *r, struct topic_writer *writer,
                          const char *const *topics, size_t n, struct why *why)
{
    int64_t give_up_ms = 0; /* 0: the brokers have not yet answered without a topic */
    int64_t reported_ms = 0;

    while (!role_stopping(r)) {
        enum err err = topic_writer_check(writer, topics, n, ASK_MS, why);
        int64_t now_ms = clock_mono_ms();
        if (!err)
            return OK;
        if (err == ERR_STOP && give_up_ms == 0)
            give_up_ms = now_ms + MISSING_GRACE_MS;
        if (err != ERR_RETRY && (err != ERR_STOP || now_ms >= give_up_ms))
            return err;
        role_alive(r);
        role_ready(r, why->text);
        if (!reported_ms || now_ms - reported_ms >= REPORT_MS) { /* at once, then now and then */
            reported_ms = now_ms;
            log_warn("topics_awaited", LOG_STR("role", str_of(r->role->name)),
                     LOG_STR("error", str_of(why->text)));
        }
        wake_reset(role_wake(r));
        if (!role_stopping(r))
            wake_wait(role_wake(r), AGAIN_MS);
    }
    return OK;
}

void role_leave(struct role_ctx *r, struct http_server *server, int64_t delay_s)
{
    for (size_t i = 0; i < r->daemon->n_roles; i++)
        if (atomic_load(&r->daemon->roles[i].failed))
            delay_s = 0; /* the sooner it is started again, the better */
    int64_t until_ms = clock_mono_ms() + delay_s * 1000;
    http_server_last_requests(server);
    if (delay_s > 0)
        log_info("leaving", LOG_STR("role", str_of(r->role->name)),
                 LOG_INT("still_taking_s", delay_s));
    while (clock_mono_ms() < until_ms) {
        role_alive(r);
        wake_reset(role_wake(r));
        wake_wait(role_wake(r), LEAVE_TURN_MS);
    }
    http_server_quiesce(server);
}

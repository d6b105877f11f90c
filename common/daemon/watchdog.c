#include "watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../io/topic_admin.h"
#include "daemon_private.h"

#define LOOK_MS       1000
#define ASK_EVERY_MS  15000
#define ASK_MS        2000
#define IDLE_MS       60000 /* then its end is asked for … */
#define STALLED_TIMES 3     /* … and so often in a row there must be more than was read */

struct watchdog {
    struct daemon_ctx *daemon;
    struct topic_admin *admin; /* NULL until a partition is idle */
    struct wake wake;
    atomic_bool stop;
    pthread_t thread;
    bool running;
    int64_t asked_ms;
    int times;                    /* in a row that behind had more */
    struct idle_partition behind; /* what the last asking found */
};

static void give_up(struct watchdog *w, struct str role, const char *reason)
{
    log_error("stalled", LOG_STR("role", role), LOG_STR("reason", str_of(reason)));
    atomic_store(&w->daemon->stalled, true);
    atomic_store(&w->stop, true);
    if (w->daemon->stop)
        stop_ask(w->daemon->stop, "stalled");
}

static bool is_same(const struct idle_partition *a, const struct idle_partition *b)
{
    return a->partition == b->partition && a->offset == b->offset &&
           str_is(str_of(a->topic), b->topic);
}

/* True when one of the idle partitions has more than was read; it is copied to found. */
static bool ask(struct watchdog *w, const struct idle_partition *idle, size_t n,
                struct idle_partition *found)
{
    struct topic_position at[ROLE_IDLE_MAX];
    struct why why;
    ptrdiff_t behind = -1;
    for (size_t i = 0; i < n; i++)
        at[i] = (struct topic_position){ idle[i].topic, idle[i].partition, idle[i].offset };
    const struct kafka_options kafka = config_kafka(w->daemon->config, w->daemon->spec->name);
    if (!w->admin && topic_admin_new(&w->admin, &kafka, ASK_MS, &why))
        return false;
    if (topic_admin_behind(w->admin, at, n, &behind, &why) || behind < 0)
        return false; /* no broker answers: the reason is known */
    *found = idle[behind];
    return true;
}

/* Asks for all roles at once; what is found must be the same a few times in a row: a record may
 * have come at the very moment. */
static void look_at_partitions(struct watchdog *w, int64_t now_ms)
{
    struct idle_partition idle[ROLE_IDLE_MAX], found;
    char reason[256];
    if (now_ms - w->asked_ms < ASK_EVERY_MS)
        return;
    w->asked_ms = now_ms;
    for (size_t i = 0; i < w->daemon->n_roles; i++) {
        struct role_ctx *role = &w->daemon->roles[i];
        size_t n = role_idle_now(role, now_ms - IDLE_MS, idle);
        if (n == 0 || !ask(w, idle, n, &found))
            continue;
        w->times = w->times && is_same(&found, &w->behind) ? w->times + 1 : 1;
        w->behind = found;
        if (w->times < STALLED_TIMES)
            return;
        snprintf(reason, sizeof(reason),
                 "%s [%d] has records that are not read, and none was for %" PRId64 " s",
                 found.topic, (int)found.partition, (now_ms - found.since_ms) / 1000);
        give_up(w, str_of(role_name(role)), reason);
        return;
    }
    w->times = 0;
}

static void look_at_roles(struct watchdog *w, int64_t now_ms)
{
    struct why why;
    for (size_t i = 0; i < w->daemon->n_roles; i++) {
        struct role_ctx *role = &w->daemon->roles[i];
        struct health health = role_health_now(role);
        if (health.ended || !health_check(&health, now_ms, &why))
            continue; /* an ended role ends the daemon by itself */
        if (now_ms - health.alive_ms > HEALTH_STALLED_MS ||
            now_ms - health.alive_ms <= HEALTH_SILENT_MS) {
            give_up(w, str_of(role_name(role)), why.text);
            return;
        }
    }
}

void watchdog_look(struct watchdog *w, int64_t now_ms)
{
    look_at_roles(w, now_ms);
    look_at_partitions(w, now_ms);
}

static void *watch(void *opaque)
{
    struct watchdog *w = opaque;
    while (!atomic_load(&w->stop)) {
        watchdog_look(w, clock_mono_ms());
        wake_wait(&w->wake, LOOK_MS);
    }
    return NULL;
}

enum err watchdog_new(struct watchdog **ret, struct daemon_ctx *daemon, struct why *why)
{
    struct watchdog *w = mem_alloc(1, sizeof(*w));
    enum err err = wake_init(&w->wake, why);
    if (err) {
        free(w);
        return err;
    }
    w->daemon = daemon;
    *ret = w;
    return OK;
}

enum err watchdog_start(struct watchdog *w, struct why *why)
{
    w->running = pthread_create(&w->thread, NULL, watch, w) == 0;
    return w->running ? OK : why_set(why, ERR_STOP, "no thread for the watchdog");
}

void watchdog_free(struct watchdog *w)
{
    if (!w)
        return;
    atomic_store(&w->stop, true);
    wake_up(&w->wake);
    if (w->running)
        pthread_join(w->thread, NULL);
    topic_admin_free(w->admin);
    wake_clear(&w->wake);
    free(w);
}

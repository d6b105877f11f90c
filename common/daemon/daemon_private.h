/* Shared by daemon.c, role*.c and admin.c only. */
#ifndef CRCR_DAEMON_DAEMON_PRIVATE_H
#define CRCR_DAEMON_DAEMON_PRIVATE_H

#include <pthread.h>

#include "../io/topic_reader.h"
#include "daemon.h"
#include "health.h"
#include "stop.h"
#include "watchdog.h"

/* A partition with nothing in hand and nothing read since since_ms (monotonic). */
struct idle_partition {
    char topic[128];
    int32_t partition;
    int64_t offset; /* one past what was read; -1: neither a record nor the end came yet */
    int64_t since_ms;
};
#define ROLE_IDLE_MAX 64
#define WATCHED_MAX   2

struct role_ctx {
    const struct role *role;
    struct daemon_ctx *daemon;
    void *opaque; /* of daemon_spec.start */
    struct wake wake;
    pthread_t thread;
    bool running;    /* main thread only: the thread was started and not yet joined */
    enum err result; /* valid once joined */
    atomic_bool failed;

    pthread_mutex_t lock; /* guards the rest */
    struct health health;
    struct topic_reader_state state;
    struct idle_partition idle[ROLE_IDLE_MAX];
    size_t n_idle;
    char not_ready[512]; /* "" = ready */
};

struct daemon_ctx {
    const struct daemon_spec *spec;
    struct config *config;
    struct metrics *metrics;
    struct stop *stop;
    struct admin *admin;
    char owner[96];
    struct watchdog *watchdog;
    atomic_bool stopping;
    atomic_bool stalled;    /* the watchdog has given up */
    struct role_ctx *roles; /* the chosen ones */
    size_t n_roles;
    struct watched_thread {
        _Atomic(const char *) name; /* NULL: none */
        atomic_llong alive_ms;      /* monotonic: its last sign of life */
    } watched[WATCHED_MAX];         /* the threads of daemon_watch */
};

/* ---- role.c ---- */

enum err role_init(struct role_ctx *r, const struct role *role, struct daemon_ctx *daemon,
                   struct why *why) MUST_CHECK;
/* Takes a zeroed role_ctx, too. */
void role_clear(struct role_ctx *r);
enum err role_start(struct role_ctx *r, void *opaque, struct why *why) MUST_CHECK;
/* Waits for the thread and returns the result of run. OK when it was never started. */
enum err role_join(struct role_ctx *r);
/* ERR_STOP with the reason when not healthy; ERR_RETRY with the reason when not ready. */
enum err role_check_health(struct role_ctx *r, struct why *why) MUST_CHECK;
enum err role_check_ready(struct role_ctx *r, struct why *why) MUST_CHECK;
struct health role_health_now(struct role_ctx *r);
/* As of the last role_reads. */
struct topic_reader_state role_state_now(struct role_ctx *r);
/* Fills ret (ROLE_IDLE_MAX) with the partitions idle since before_ms; returns how many. */
size_t role_idle_now(struct role_ctx *r, int64_t before_ms, struct idle_partition *ret);

/* ---- daemon.c ---- */

/* As role_check_health, of a thread of daemon_watch. OK when there is none. */
enum err watch_check_health(struct watched_thread *watched, struct why *why) MUST_CHECK;

/* ---- admin.c: /healthz, /readyz, /metrics ---- */

enum err admin_new(struct admin **ret, struct daemon_ctx *daemon, const char *listen,
                   struct why *why) MUST_CHECK;
/* NULL is fine. */
void admin_free(struct admin *a);
int admin_port(const struct admin *a);

/* ---- process.c: what /proc says of this process; -1 when it does not ---- */

int64_t process_rss_bytes(void);
int64_t process_open_fds(void);
int64_t process_max_fds(void);
/* Shells and old init systems set the limit to 1,024 descriptors; this raises it. */
void process_raise_max_fds(void);
double process_cpu_seconds(void);
/* Turns off core dumps of this process and its children (setrlimit(2), RLIMIT_CORE): they would
 * hold keys and tokens. */
void process_refuse_cores(void);
/* Only root may attach to this process or read its memory and environment, and a program of
 * core_pattern gets no core either (prctl(2), PR_SET_DUMPABLE). */
void process_refuse_tracing(void);
/* "host-pid-8hex" */
void process_owner(char *to, size_t size);

#endif

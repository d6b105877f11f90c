#include <stdlib.h>

#include "../base/clock.h"
#include "../base/json_text.h"
#include "../base/mem.h"
#include "../io/http_server.h"
#include "daemon_private.h"

enum { REPLY_MAX = 64 * 1024, METRICS_MAX = 16 * 1024 * 1024 };

enum {
    CPU_SECONDS,
    RSS_BYTES,
    OPEN_FDS,
    MAX_FDS,
    START_TIME,
    BUILD_INFO,
    ROLE_HEALTHY,
    ROLE_READY,
    ROLE_LAG,
    ROLE_BACKLOG,
    ROLE_STALLED,
    ROLE_PARTITIONS,
    ROLE_LOST,
    N_FAMILIES
};

static const struct metric_family families[N_FAMILIES] = {
    [CPU_SECONDS] = { "process_cpu_seconds_total",
                      METRIC_COUNTER,
                      "User and system CPU time spent in seconds.",
                      { NULL } },
    [RSS_BYTES] = { "process_resident_memory_bytes",
                    METRIC_GAUGE,
                    "Resident memory size in bytes.",
                    { NULL } },
    [OPEN_FDS] = { "process_open_fds", METRIC_GAUGE, "Number of open file descriptors.", { NULL } },
    [MAX_FDS] = { "process_max_fds",
                  METRIC_GAUGE,
                  "Maximum number of open file descriptors.",
                  { NULL } },
    [START_TIME] = { "process_start_time_seconds",
                     METRIC_GAUGE,
                     "Start time of the process since the Unix epoch in seconds.",
                     { NULL } },
    [BUILD_INFO] = { "crcr_build_info",
                     METRIC_GAUGE,
                     "1, with the daemon and its version.",
                     { "daemon", "version" } },
    [ROLE_HEALTHY] = { "crcr_role_healthy",
                       METRIC_GAUGE,
                       "1 while the role (allowlist, pipeline: threads that follow topics) is "
                       "alive "
                       "and moves on; /healthz says why not.",
                       { "role" } },
    [ROLE_READY] = { "crcr_role_ready",
                     METRIC_GAUGE,
                     "1 when the role is ready; /readyz says why not.",
                     { "role" } },
    [ROLE_LAG] = { "crcr_role_lag_records",
                   METRIC_GAUGE,
                   "Records that wait for the role, but for partitions of which nothing was heard "
                   "yet; -1: of none was.",
                   { "role" } },
    [ROLE_BACKLOG] = { "crcr_role_backlog_seconds",
                       METRIC_GAUGE,
                       "How long the oldest record that waits for the role has waited; -1 when "
                       "unknown.",
                       { "role" } },
    [ROLE_STALLED] = { "crcr_role_stalled_seconds",
                       METRIC_GAUGE,
                       "For how long records have waited and none was finished.",
                       { "role" } },
    [ROLE_PARTITIONS] = { "crcr_role_partitions",
                          METRIC_GAUGE,
                          "Partitions that the role reads now.",
                          { "role" } },
    [ROLE_LOST] = { "crcr_role_partitions_lost_total",
                    METRIC_COUNTER,
                    "Partitions that went to another replica because this one was not heard of.",
                    { "role" } },
};

struct admin {
    struct daemon_ctx *daemon;
    struct metrics *metrics; /* of the process; the program has its own */
    struct http_server *server;
};

typedef enum err role_check_fn(struct role_ctx *r, struct why *why);

static void put_reason(struct buf *reasons, const char *text)
{
    if (reasons->len)
        buf_putc(reasons, ',');
    json_text_put(reasons, str_of(text));
}

/* {"ok":false,"reasons":["router: …"]} with 503, or {"ok":true} with 200. reasons: those that are
 * none of a role's. */
static void reply_checked(const struct daemon_ctx *d, struct http_exchange *x, role_check_fn *check,
                          struct buf *reasons)
{
    for (size_t i = 0; i < d->n_roles; i++) {
        struct why why;
        if (check(&d->roles[i], &why))
            put_reason(reasons, why.text);
    }
    bool ok = reasons->len == 0;
    struct buf CLEANUP(buf_clear) body;
    buf_init(&body, REPLY_MAX + 64);
    buf_printf(&body, ok ? "{\"ok\":true}\n" : "{\"ok\":false,\"reasons\":[%s]}\n",
               buf_str(reasons).ptr);
    http_reply(x, ok ? 200 : 503, NULL, NULL, buf_str(&body));
}

static void handle_health(void *opaque, struct http_exchange *x)
{
    struct admin *a = opaque;
    struct buf CLEANUP(buf_clear) reasons;
    struct why why;
    buf_init(&reasons, REPLY_MAX);
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watch_check_health(&a->daemon->watched[i], &why))
            put_reason(&reasons, why.text);
    reply_checked(a->daemon, x, role_check_health, &reasons);
}

static void handle_ready(void *opaque, struct http_exchange *x)
{
    struct admin *a = opaque;
    struct buf CLEANUP(buf_clear) reasons;
    buf_init(&reasons, REPLY_MAX);
    if (daemon_stopping(a->daemon))
        put_reason(&reasons, "stopping");
    reply_checked(a->daemon, x, role_check_ready, &reasons);
}

static void set(struct admin *a, size_t family, const struct str *labels, double to)
{
    metrics_set(a->metrics, family, labels, to);
}

static void refresh(struct admin *a)
{
    set(a, CPU_SECONDS, NULL, process_cpu_seconds());
    set(a, RSS_BYTES, NULL, (double)process_rss_bytes());
    set(a, OPEN_FDS, NULL, (double)process_open_fds());
    set(a, MAX_FDS, NULL, (double)process_max_fds());
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct watched_thread *w = &a->daemon->watched[i];
        const char *name = atomic_load(&w->name);
        if (name)
            set(a, ROLE_HEALTHY, METRIC_LABELS(str_of(name)), !watch_check_health(w, NULL));
    }
    for (size_t i = 0; i < a->daemon->n_roles; i++) {
        struct role_ctx *r = &a->daemon->roles[i];
        const struct str *labels = METRIC_LABELS(str_of(r->role->name));
        set(a, ROLE_HEALTHY, labels, !role_check_health(r, NULL));
        set(a, ROLE_READY, labels, !role_check_ready(r, NULL));
        struct health health = role_health_now(r);
        int64_t now_ms = clock_mono_ms();
        set(a, ROLE_LAG, labels, (double)health.lag);
        set(a, ROLE_BACKLOG, labels, health_backlog_seconds(&health, now_ms, clock_wall_ms()));
        set(a, ROLE_STALLED, labels, health_stalled_seconds(&health, now_ms));
        struct topic_reader_state state = role_state_now(r);
        if (!state.taken) /* it reads nothing in a group, or nothing yet */
            continue;
        set(a, ROLE_PARTITIONS, labels, (double)state.now);
        set(a, ROLE_LOST, labels, (double)state.lost);
    }
}

static void handle_metrics(void *opaque, struct http_exchange *x)
{
    struct admin *a = opaque;
    struct buf CLEANUP(buf_clear) body;
    buf_init(&body, METRICS_MAX);
    refresh(a);
    metrics_render(a->metrics, &body);
    metrics_render(a->daemon->metrics, &body);
    if (buf_full(&body))
        http_reply_error(x, 500, "the metrics are larger than 16 MiB");
    else
        http_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, buf_str(&body));
}

static const struct http_route routes[] = {
    { .method = "GET", .path = "/healthz", .handle = handle_health },
    { .method = "GET", .path = "/readyz", .handle = handle_ready },
    { .method = "GET", .path = "/metrics", .handle = handle_metrics },
};

enum err admin_new(struct admin **ret, struct daemon_ctx *daemon, const char *listen,
                   struct why *why)
{
    struct admin *a = mem_alloc(1, sizeof(*a));
    a->daemon = daemon;
    a->metrics = metrics_new(families, N_FAMILIES);
    set(a, START_TIME, NULL, (double)clock_wall_ms() / 1000);
    set(a, BUILD_INFO, METRIC_LABELS(str_of(daemon->spec->name), str_of(daemon_version())), 1);
    const struct http_server_options options = {
        .listen = listen,
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = a,
        .max_connections = 64,
    };
    enum err err = http_server_new(&a->server, &options, why);
    if (err) {
        admin_free(a);
        return err;
    }
    *ret = a;
    return OK;
}

void admin_free(struct admin *a)
{
    if (!a)
        return;
    http_server_free(a->server, 1000);
    metrics_free(a->metrics);
    free(a);
}

int admin_port(const struct admin *a)
{
    return http_server_port(a->server);
}

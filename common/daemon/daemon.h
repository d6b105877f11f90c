/* What every daemon's main does the same way: arguments, configuration, logs, signals, the admin
 * port, and role threads with their health. main.c wires; this is the frame it wires into. */
#ifndef CRCR_DAEMON_DAEMON_H
#define CRCR_DAEMON_DAEMON_H

#include <stdatomic.h>

#include "../base/metrics.h"
#include "../base/wake.h"
#include "config.h"

struct daemon_ctx;
struct role_ctx;

/* One role: a thread with its own consumer group. */
struct role {
    const char *name; /* "router" */
    const char *help;
    /* Runs until role_stopping(); then drains and returns OK. Another value stops the daemon with
     * exit 1. */
    enum err (*run)(struct role_ctx *role, void *opaque, struct why *why);
};

struct daemon_spec {
    enum daemon daemon;
    const char *name;          /* "crcr-ingest" */
    const char *summary;       /* one line */
    const char *admin_default; /* "127.0.0.1:9101" */
    const struct role *roles;  /* ingest: one role without choice */
    size_t n_roles;
    const struct metric_family *families;
    size_t n_families;
    /* Builds what the roles share; *opaque is passed to each. Called after the configuration is
     * read and the admin port is open. check_only: for --check-config, validate what can be
     * validated without the network and return. On an error what was built may be in *opaque: it is
     * given to stop. */
    enum err (*start)(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why);
    /* After all roles ended, within the time to drain. Takes NULL and half-built objects. */
    void (*stop)(void *opaque);
};

/* Runs a daemon from start to end: parses --help, --version, --check-config, --roles a,b; loads the
 * configuration; blocks signals; starts admin and roles; waits for SIGTERM/SIGINT; drains (25 s at
 * most, a second signal ends it at once); returns the exit code: 0 drained, 1 a role failed or
 * drain ran over, 2 bad usage or configuration (also start() with ERR_REFUSE or ERR_STOP; with
 * another error it is 1, worth a restart). */
int daemon_main(const struct daemon_spec *spec, int argc, char **argv, char *const *environment);

const struct config *daemon_config(const struct daemon_ctx *ctx);
struct metrics *daemon_metrics(const struct daemon_ctx *ctx);
/* A random name of this process, "host-pid-8hex": claims and leases carry it. */
const char *daemon_owner(const struct daemon_ctx *ctx);
/* True when that role was chosen with --roles. */
bool daemon_has_role(const struct daemon_ctx *ctx, const char *name);
/* True once the daemon has to stop: a long start() gives up then. */
bool daemon_stopping(const struct daemon_ctx *ctx);
/* For a thread that is no role but must be watched as one ("allowlist"), made by start() or a role:
 * each turn of its loop stores clock_mono_ms() in what this returns, which the daemon keeps. After
 * 25 s without that /healthz answers 503 with the name. At most two a daemon; name is kept. */
atomic_llong *daemon_watch(struct daemon_ctx *ctx, const char *name);

/* "router": static. */
const char *role_name(const struct role_ctx *r);
const struct config *role_config(const struct role_ctx *r);
struct metrics *role_metrics(const struct role_ctx *r);
struct daemon_ctx *role_daemon(const struct role_ctx *r);
/* The role's own wake: signalled on stop; give it to its reader, writer and http_client_poll. */
struct wake *role_wake(struct role_ctx *r);
bool role_stopping(const struct role_ctx *r);
/* Health is progress. Call role_alive each turn of the loop; role_progress when something moved;
 * lag: records waiting
 * (-1 unknown); role_waiting(true) while it waits on purpose (throttled, delay not due).
 * /healthz answers 503 when a role's thread ended, was not alive for 25 s, or has lag and no
 * progress for 90 s without waiting; the watchdog then ends the daemon (watchdog.h). */
void role_alive(struct role_ctx *r);
void role_progress(struct role_ctx *r);
void role_lag(struct role_ctx *r, int64_t lag);
void role_waiting(struct role_ctx *r, bool waiting);
/* Sets the counter of (role, class) to 0 for every class of the DLQ: an alert sees the first record
 * only as an increase. */
void role_declare_dlq(struct role_ctx *r, size_t family, struct str role);
/* role_lag, and how long the oldest record has waited, both from the role's reader. On the role's
 * thread. */
struct topic_reader;
void role_reads(struct role_ctx *r, struct topic_reader *reader);
/* /readyz answers 503 with the reason until every role is ready (reason NULL = ready). reason is
 * copied. */
void role_ready(struct role_ctx *r, const char *reason_not_ready);

/* Waits at the start of a role until the brokers answer and have these topics; meanwhile the role
 * is alive and not ready. Brokers may start after us, and not every broker knows a new topic at
 * once. ERR_STOP with the name: a topic is still missing after 10 s. OK, too, when the role is
 * stopping. */
struct topic_writer;
enum err role_wait_topics(struct role_ctx *r, struct topic_writer *writer,
                          const char *const *topics, size_t n, struct why *why) MUST_CHECK;

/* The last step of a role that serves HTTP, once it has to stop. For delay_s seconds it still takes
 * connections, since a load balancer needs a moment to see that /readyz answers 503, and each
 * answer asks the client for a new connection (RFC 9112 9.6). Then the server is quiesced. The
 * delay counts towards the 25 s. There is none when another role has failed. */
struct http_server;
void role_leave(struct role_ctx *r, struct http_server *server, int64_t delay_s);

/* "0.1.0 (abc1234)" from CMake. */
const char *daemon_version(void);

#endif

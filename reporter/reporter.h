/* What the roles of crcr-reporter share. Nothing in it changes after the start, so every role's
 * thread may read it; each role has its own connections. */
#ifndef CRCR_REPORTER_REPORTER_H
#define CRCR_REPORTER_REPORTER_H

#include "../common/daemon/daemon.h"
#include "../common/io/redis.h"
#include "../common/model/ids.h"
#include "../common/model/topics.h"
#include "../common/view/allowlist_feed.h"
#include "../common/view/jobs.h"
#include "../common/worker/worker.h"

struct jwt_key;
struct gate;

struct reporter {
    struct topics topics;
    struct kafka_options kafka;
    struct redis_options redis;
    struct view_times times;
    int64_t quiet_ms;       /* CRCR_RUN_QUIET_SECONDS */
    int64_t job_checks_max; /* CRCR_JOB_CHECKS_MAX */
    const char *upstream_repo;
    struct allowlist_feed *feed; /* locks for itself */
    struct jwt_key *app_key;     /* NULL without the role reconcile */
    struct gate *gate;
    const char *public_url; /* of the pages; NULL: not known */
    const char *ca_file;    /* NULL: the system's */
    bool oncall_comments;
    bool known_neutral; /* CRCR_KNOWN_FAILURES */
};

/* Index in the table of metrics (metrics.c). */
enum reporter_metric {
    METRIC_FACTS,
    METRIC_FACTS_WAITING,
    METRIC_DLQ,
    METRIC_DELAYED,
    METRIC_NOT_STORED,
    METRIC_LOST,
    METRIC_REDIS_UP,
    METRIC_RESULTS_POSTED,
    METRIC_POST_SECONDS,
    METRIC_CHECK_RUNS,
    METRIC_CHECK_RUN_SECONDS,
    METRIC_UPSTREAM_CALLS,
    METRIC_SWEEP_TIMED_OUT,
    METRIC_OVERDUE_JOBS,
    METRIC_DUE,
    METRIC_DUE_MARKED,
    METRIC_PAGES,
    METRIC_CANARY_RESULT,
    METRIC_PAGES_WAITING,
    METRIC_BUDGET,
    METRIC_BUDGET_LEFT,
    METRIC_BUDGET_WAITS,
    METRIC_VIEW_CONSISTENT,
    METRIC_REBUILD_RECORDS,
    METRIC_REBUILD_SECONDS,
    METRIC_COUNT
};
extern const struct metric_family reporter_metrics[METRIC_COUNT];
struct budget_families;
extern const struct budget_families reporter_budget_families;
extern const struct worker_metrics reporter_worker_metrics;

/* Waits until the allowlist has been read: before, nobody knows a tier or a device. Meanwhile the
 * role is alive and not ready. Returns at once when the role is to stop. */
void reporter_wait_allowlist(const struct reporter *r, struct role_ctx *role);

/* Until the next wake-up, a tick at most; at once when the role is to stop. The role is alive. */
void reporter_tick(struct role_ctx *role, int ms);
/* Redis is available again, or not: logs it and sets METRIC_REDIS_UP. */
void reporter_redis_seen(struct role_ctx *role, bool up, const char *reason);
/* Appends the key of a commit and downstream in the topic reconcile: one key, and so one owner,
 * however the repository is spelled. */
void reporter_put_dirty_key(struct buf *to, struct str head_sha, struct str repo);
#define DIRTY_KEY_MAX (SHA_MAX + 1 + REPO_MAX)

/* reporter.c, for the daemon's frame. */
enum err reporter_start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why);
void reporter_stop(void *opaque);

enum err fold_run(struct role_ctx *role, void *reporter, struct why *why);
enum err reconcile_run(struct role_ctx *role, void *reporter, struct why *why);
enum err forward_run(struct role_ctx *role, void *reporter, struct why *why);
enum err sweep_run(struct role_ctx *role, void *reporter, struct why *why);
enum err web_run(struct role_ctx *role, void *reporter, struct why *why);

/* The part of the sweep that counts, for its test: deliveries whose jobs have changed (crcr:tally)
 * → the hours of their downstreams (common/view/hours.h). At most `most` of those whose time had
 * come at now_ms; what is counted is remembered for ttl_s. *n: how many were looked at. A sweeper
 * that dies in between leaves the mark, and the next count adds only what differs. One that Redis
 * refuses to give holds up no other: it is logged and left, as what failed otherwise, and taken
 * again when its lease has run out. */
enum err sweep_tally(struct redis *r, int64_t now_ms, int64_t ttl_s, size_t most, size_t *n,
                     struct why *why) MUST_CHECK;

#endif

#include "rebuild.h"

#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/topic_follower.h"
#include "../common/io/topic_writer.h"
#include "../common/model/ids.h"
#include "../common/view/epoch.h"
#include "../common/view/overdue.h"
#include "ended_runs.h"

#define LOOK_MS    1000
#define WORK_MS    100
#define POLL_MS    50
#define RENEW_MS   1000
#define REPORT_MS  2000
#define STALL_MS   30000     /* no record for so long: from the beginning, with new ends */
#define CLAIMS_MS  604800000 /* 7 d: what a claim is kept for */
#define JOBS_CHUNK 200
/* Marks in flight at once: more are waited for, the lease being renewed meanwhile. */
#define MARKS_MAX  20000
/* For one slot in a queue that is full all the same; less than the lease. */
#define ROOM_MS    8000

static const char *const phase_names[] = {
    [REBUILD_DISPATCHES] = "dispatches", [REBUILD_RESULTS] = "results", [REBUILD_EVENTS] = "events",
    [REBUILD_CALLBACKS] = "callbacks",   [REBUILD_PARTS] = "open jobs",
};

struct rebuild {
    struct role_ctx *role;
    struct topic_writer *writer; /* of marks, while we hold the lease: the fold's gives up early */
    struct rebuild_fold fold;
    bool consistent, known; /* known: the view was looked at */
    bool elsewhere;         /* said so in the log already */
    int64_t look_ms;        /* not before; monotonic clock, as all here */
    enum err answer;        /* of Redis to the last look */
    struct why reason;
    struct topic_follower *span; /* not NULL: we hold the lease of fold.fence, and read */
    int64_t began_ms, moved_ms, renew_ms, reported_ms;
    uint64_t records;
    size_t unacknowledged; /* dirty marks put and not reported yet */
    bool lost;             /* one of them was not stored */
    bool marked;           /* FINISHING: all open jobs are marked */
};

static const char *phase_of(const struct rebuild *b)
{
    return phase_names[topic_follower_seen(b->span).topic];
}

/* ---- the lease ------------------------------------------------------------------------------- */

static enum err renew(struct rebuild *b, struct why *why)
{
    int64_t now = clock_mono_ms();
    if (now < b->renew_ms)
        return OK;
    b->renew_ms = now + RENEW_MS;
    if (now >= b->reported_ms + REPORT_MS) {
        log_info("rebuild_progress", LOG_STR("phase", str_of(phase_of(b))),
                 LOG_INT("done", topic_follower_seen(b->span).done),
                 LOG_INT("total", topic_follower_seen(b->span).total));
        b->reported_ms = now;
    }
    return view_lease_renew(b->fold.redis, b->fold.fence, phase_of(b),
                            topic_follower_seen(b->span).done, topic_follower_seen(b->span).total,
                            why);
}

/* ---- marks for the reconciler ---------------------------------------------------------------- */

static void mark_written(void *opaque, enum err err, const struct topic_position *at,
                         const char *reason)
{
    struct rebuild *b = opaque;
    (void)at;
    (void)reason;
    b->unacknowledged--;
    b->lost = b->lost || err;
}

void rebuild_mark(struct rebuild *b, const char *head_sha, const char *repo, const char *payer)
{
    struct buf CLEANUP(buf_clear) key;
    struct headers headers;
    struct why why;
    headers_init(&headers);
    if (payer)
        headers_put(&headers, "repo", str_of(payer));
    buf_init(&key, DIRTY_KEY_MAX);
    reporter_put_dirty_key(&key, str_of(head_sha), str_of(repo));
    b->unacknowledged++;
    int64_t until = clock_mono_ms() + ROOM_MS;
    const char *topic = b->fold.reporter->topics.name[TOPIC_RECONCILE];
    const struct new_record record = { topic, buf_str(&key), STR_LIT("rebuilt"), &headers, 0 };
    enum err err;
    while ((err = topic_writer_put(b->writer, &record, mark_written, b, &why)) == ERR_RETRY &&
           !b->lost && clock_mono_ms() < until) {
        topic_writer_poll(b->writer, POLL_MS);
        role_alive(b->role);
    }
    if (!err)
        return;
    b->unacknowledged--;
    b->lost = true;
}

/* Until some marks are acknowledged, when there are many. Nothing is queued at Redis. */
static enum err marks_await(struct rebuild *b, struct why *why)
{
    enum err err = OK;
    while (!err && !b->lost && b->unacknowledged >= MARKS_MAX && !role_stopping(b->role)) {
        topic_writer_poll(b->writer, POLL_MS);
        role_alive(b->role);
        err = renew(b, why);
    }
    return err;
}

/* Jobs in progress: their check runs are open. What was last sent of the others stays as it is at
 * GitHub, and is found there when they change. */
static enum err open_jobs_mark(struct rebuild *b, struct why *why)
{
    struct buf CLEANUP(buf_clear) cursor;
    buf_init(&cursor, 64);
    buf_putc(&cursor, '0');
    do {
        struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
        enum err err = overdue_scan(b->fold.redis, &cursor, JOBS_CHUNK, &jobs, why);
        if (err)
            return err;
        for (size_t i = 0; i < jobs.n; i++)
            if ((jobs.at[i].top_level >= 3 || job_is_open(&jobs.at[i])) && jobs.at[i].head_sha &&
                jobs.at[i].repo)
                rebuild_mark(b, jobs.at[i].head_sha, jobs.at[i].repo, NULL);
        topic_writer_poll(b->writer, 0);
        role_alive(b->role);
        err = renew(b, why);
        if (!err)
            err = marks_await(b, why);
        if (err)
            return err;
    } while (!str_is(buf_str(&cursor), "0"));
    return OK;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void close_both(struct rebuild *b)
{
    topic_writer_free(b->writer); /* which reports what is open */
    b->writer = NULL;
    topic_follower_free(b->span);
    b->span = NULL;
}

/* Gives the lease back. */
static void let_go(struct rebuild *b)
{
    struct why why;
    close_both(b);
    if (b->fold.batch.n > 0)
        (void)!rebuild_fold_collect(&b->fold, &why); /* replies that are on their way */
    (void)!view_lease_release(b->fold.redis, b->fold.fence, &why); /* else it runs out */
    b->look_ms = clock_mono_ms() + LOOK_MS;
}

static void begin(struct rebuild *b)
{
    const struct reporter *r = b->fold.reporter;
    const struct topic_writer_options marks = { .kafka = r->kafka };
    /* Results and claims as far back as Redis would still have them. */
    int64_t now = clock_wall_ms(), kept_ms = r->times.ttl_s * 1000;
    int64_t from_ms = now > kept_ms ? now - kept_ms : 0;
    int64_t claims_ms = kept_ms > CLAIMS_MS ? from_ms : now - CLAIMS_MS;
    const char *const topics[REBUILD_PARTS] = {
        [REBUILD_DISPATCHES] = r->topics.name[TOPIC_DISPATCHES],
        [REBUILD_RESULTS] = r->topics.name[TOPIC_RESULTS],
        [REBUILD_EVENTS] = r->topics.name[TOPIC_EVENTS],
        [REBUILD_CALLBACKS] = r->topics.name[TOPIC_CALLBACKS],
    };
    const int64_t from[REBUILD_PARTS] = { [REBUILD_DISPATCHES] = claims_ms,
                                          [REBUILD_RESULTS] = from_ms,
                                          [REBUILD_EVENTS] = from_ms,
                                          [REBUILD_CALLBACKS] = from_ms };
    const struct topic_follower_options options = { .kafka = r->kafka,
                                                    .topics = topics,
                                                    .n_topics = REBUILD_PARTS,
                                                    .from = from,
                                                    .to_ends = true };
    struct why why;
    b->lost = b->marked = false;
    b->records = 0;
    b->fold.batch.n = b->fold.batch.bytes = 0;
    b->began_ms = b->moved_ms = b->reported_ms = clock_mono_ms();
    b->renew_ms = 0;
    if (topic_follower_start(&b->span, &options, &why) ||
        topic_writer_new(&b->writer, &marks, &why)) {
        log_warn("rebuild_abandoned", LOG_STR("error", str_of(why.text)));
        let_go(b);
        return;
    }
    log_info("rebuild_started", LOG_INT("total", topic_follower_seen(b->span).total));
}

/* ---- looking --------------------------------------------------------------------------------- */

static enum err epoch_look(struct rebuild *b, struct why *why)
{
    int64_t epoch;
    enum view_lease lease;
    bool was_consistent = b->consistent;
    b->look_ms = clock_mono_ms() + LOOK_MS;
    enum err err = view_epoch_get(b->fold.redis, &epoch, why);
    if (err)
        return err;
    b->consistent = epoch != 0;
    if (!b->consistent && (was_consistent || !b->known))
        log_warn("view_inconsistent",
                 LOG_STR("consequence", STR_LIT("it is rebuilt from the topics")));
    b->known = true;
    if (b->consistent)
        return OK;
    err = view_lease_take(b->fold.redis, daemon_owner(role_daemon(b->role)), &lease, &b->fold.fence,
                          why);
    if (err)
        return err;
    if (lease == VIEW_LEASE_BUSY && !b->elsewhere)
        log_info("rebuild_elsewhere", LOG_STR("lease", STR_LIT("another replica holds it")));
    b->elsewhere = lease == VIEW_LEASE_BUSY;
    b->consistent = lease == VIEW_LEASE_CONSISTENT;
    if (lease == VIEW_LEASE_TAKEN)
        begin(b);
    return OK;
}

/* ---- working --------------------------------------------------------------------------------- */

/* One batch, or what comes in POLL_MS or is passed over in WORK_MS: the lease is to be renewed. */
static enum err batch(struct rebuild *b, struct why *why)
{
    const struct record *record;
    int64_t until = clock_mono_ms() + WORK_MS;
    enum err err = OK;
    while (!err && b->fold.batch.n < REBUILD_BATCH && b->fold.batch.bytes < REBUILD_BATCH_BYTES &&
           b->unacknowledged < MARKS_MAX && clock_mono_ms() < until &&
           (record = topic_follower_next(b->span, b->fold.batch.n > 0 ? 0 : POLL_MS))) {
        enum rebuild_part part = (enum rebuild_part)topic_follower_seen(b->span).topic;
        err = rebuild_fold_record(&b->fold, part, record, why);
        b->records++;
        b->moved_ms = clock_mono_ms();
        metrics_add(role_metrics(b->role), METRIC_REBUILD_RECORDS,
                    METRIC_LABELS(str_of(phase_names[part])), 1);
    }
    struct why other;
    enum err collected = rebuild_fold_collect(&b->fold, &other);
    FAULT_POINT("rebuild.folded");
    if (!err && collected)
        err = why_set(why, collected, "%s", other.text);
    topic_writer_poll(b->writer, 0);
    if (!err)
        err = marks_await(b, why);
    if (!err && clock_mono_ms() - b->moved_ms >= STALL_MS)
        err = why_set(why, ERR_RETRY, "nothing came from Kafka for %d s", STALL_MS / 1000);
    return err;
}

/* All is read: the marks must be stored before the epoch is set, or a crash would lose them. */
static enum err rebuild_finish(struct rebuild *b, struct why *why)
{
    enum err err = b->marked ? OK : open_jobs_mark(b, why);
    if (err)
        return err;
    b->marked = true;
    topic_writer_poll(b->writer, b->unacknowledged > 0 ? POLL_MS : 0);
    if (b->lost)
        return why_set(why, ERR_RETRY, "Kafka did not store what is to be reconciled");
    FAULT_POINT("rebuild.read");
    if (b->unacknowledged > 0)
        return OK;
    err = view_lease_finish(b->fold.redis, b->fold.fence, topic_follower_seen(b->span).done, why);
    if (err)
        return err;
    double seconds = (double)(clock_mono_ms() - b->began_ms) / 1e3;
    close_both(b);
    b->consistent = true;
    b->look_ms = clock_mono_ms() + LOOK_MS;
    metrics_set(role_metrics(b->role), METRIC_REBUILD_SECONDS, NULL, seconds);
    log_info("rebuild_done", LOG_INT("records", (int64_t)b->records),
             LOG_INT("ms", (int64_t)(seconds * 1e3)));
    return OK;
}

static void work(struct rebuild *b)
{
    struct why why;
    int64_t until = clock_mono_ms() + WORK_MS;
    do {
        enum err err = renew(b, &why);
        if (!err)
            err = topic_follower_seen(b->span).topic < REBUILD_PARTS ? batch(b, &why)
                                                                     : rebuild_finish(b, &why);
        if (err) {
            log_warn("rebuild_abandoned", LOG_STR("phase", str_of(phase_of(b))),
                     LOG_STR("error", str_of(why.text)));
            let_go(b);
        }
        role_progress(b->role);
    } while (b->span && clock_mono_ms() < until && !role_stopping(b->role));
}

enum err rebuild_turn(struct rebuild *b, bool *consistent, struct why *why)
{
    if (!b->span && clock_mono_ms() >= b->look_ms)
        b->answer = epoch_look(b, &b->reason);
    if (b->span)
        work(b);
    metrics_set(role_metrics(b->role), METRIC_VIEW_CONSISTENT, NULL, b->consistent);
    *consistent = b->consistent;
    return !b->answer ? OK : why_set(why, b->answer, "%s", b->reason.text);
}

void rebuild_look(struct rebuild *b)
{
    b->look_ms = 0;
}

bool rebuild_is_busy(const struct rebuild *b)
{
    return b->span;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct rebuild *rebuild_new(const struct reporter *reporter, struct role_ctx *role,
                            struct redis *redis, struct event_facts *scratch)
{
    struct rebuild *b = mem_alloc(1, sizeof(*b));
    b->role = role;
    b->fold = (struct rebuild_fold){
        .reporter = reporter,
        .redis = redis,
        .scratch = scratch,
        .rebuild = b,
    };
    return b;
}

void rebuild_free(struct rebuild *b)
{
    if (!b)
        return;
    if (b->span)
        let_go(b);
    free(b);
}

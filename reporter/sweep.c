/* The role sweep: what is done because time has passed. It writes nothing itself but records and
 * the hours that it counts. Any number of replicas; a lease keeps two from taking the same.
 *
 *   jobs in progress past their deadline ──leased──▶ callbacks ──acknowledged──▶ off the set
 *   commits that are to be looked at again ─leased─▶ reconcile ──acknowledged──▶ off crcr:due
 *   deliveries whose jobs have changed ─────leased─▶ counted ──▶ off crcr:tally
 *        ▲                                    │                └── fold and reconcile do the rest
 *        └── the lease ran out ◀── not acknowledged, or killed: the same record again */
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/topic_writer.h"
#include "../common/view/hours.h"
#include "../common/view/jobs.h"
#include "../common/view/lease.h"
#include "../common/view/overdue.h"
#include "reporter.h"
#include "sweep_callback.h"
#include "tally.h"

#define BATCH          100  /* leased at a time */
#define JOBS_MAX       5000 /* of one delivery and downstream; later ones are not counted */
#define DUE_MS         1000 /* between two looks for what is due */
#define UNAVAILABLE_MS 1000 /* between two looks for jobs while Redis is unavailable */
#define FLUSH_MS       1000

/* One thing that is looked for. */
struct look {
    int64_t next_ms; /* monotonic clock */
    size_t lost;     /* not published at the last look: leased still */
};

struct sweep {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct topic_writer *writer;
    int64_t period_ms; /* between two looks for jobs */
    struct look jobs, due, tally;
    bool redis_unavailable;
};

/* A Redis that refuses is waited out as one that is unavailable: it would refuse every job alike.
 */
static void redis_seen(struct sweep *s, bool up, const char *reason)
{
    if (up != s->redis_unavailable)
        return;
    s->redis_unavailable = !up;
    role_waiting(s->role, !up);
    role_ready(s->role, up ? NULL : "Redis is unavailable");
    reporter_redis_seen(s->role, up, reason);
}

/* What cannot be published is not leased: others that may would find it only when the lease has run
 * out. */
static bool may_write(struct sweep *s)
{
    struct why why;
    return !role_stopping(s->role) && !topic_writer_fatal(s->writer, &why);
}

/* ---- one batch ------------------------------------------------------------------------------- */

/* One record on its way; it stays until it is reported. */
struct errand {
    const char *event; /* of the log, when it is not stored */
    bool stored;
};

static void publish_reported(void *opaque, enum err err, const struct topic_position *at,
                             const char *reason)
{
    struct errand *errand = opaque;
    (void)at;
    errand->stored = !err;
    if (err)
        log_warn(errand->event, LOG_STR("error", str_of(reason)));
}

static void record_publish(struct sweep *s, enum topic topic, struct str key, struct str value,
                           const struct headers *headers, struct errand *errand)
{
    struct why why;
    const struct new_record record = { s->reporter->topics.name[topic], key, value, headers, 0 };
    if (topic_writer_put(s->writer, &record, publish_reported, errand, &why))
        log_warn(errand->event, LOG_STR("error", str_of(why.text)));
}

/* Every record is reported within the writer's 7 s, also while the brokers are unavailable: nothing
 * of its errands is freed before. */
static void all_reported(struct sweep *s)
{
    struct why why;
    while (topic_writer_flush(s->writer, FLUSH_MS, &why))
        role_alive(s->role);
}

/* Times out one batch of jobs. Gives how many there were. */
static size_t jobs_batch(struct sweep *s)
{
    struct metrics *m = role_metrics(s->role);
    struct overdue_list list = { .at = NULL };
    struct why why;
    if (overdue_take(s->redis, clock_wall_ms(), BATCH, &list, &why)) {
        redis_seen(s, false, why.text);
        return 0;
    }
    redis_seen(s, true, NULL);
    metrics_set(m, METRIC_OVERDUE_JOBS, NULL, (double)list.past);
    struct errand *errands = mem_alloc(list.n + 1, sizeof(*errands));
    for (size_t i = 0; i < list.n; i++) {
        const struct result_record *job = &list.at[i].job;
        struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) body;
        struct headers headers;
        buf_init(&key, DELIVERY_MAX + 1 + REPO_MAX);
        buf_init(&body, SWEEP_BODY_MAX);
        if (!sweep_callback_possible(job))
            continue;
        sweep_callback_key(job, &key);
        sweep_callback_headers(job, list.at[i].deadline_ms, &headers);
        sweep_callback_body(job, "timed_out", &body);
        errands[i].event = "sweep_not_published";
        record_publish(s, TOPIC_CALLBACKS, buf_str(&key), buf_str(&body), &headers, &errands[i]);
    }
    all_reported(s);
    for (size_t i = 0; i < list.n; i++) {
        const struct result_record *job = &list.at[i].job;
        if (!sweep_callback_possible(job))
            log_error("overdue_job_dropped", LOG_STR("key", str_of(job->key)));
        else if (!errands[i].stored) {
            s->jobs.lost++;
            continue;
        } else {
            metrics_add(m, METRIC_SWEEP_TIMED_OUT, NULL, 1);
            role_progress(s->role);
            log_info("timed_out", LOG_STR("delivery", str_of(job->delivery_id)),
                     LOG_STR("repo", str_of(job->repo)), LOG_STR("job", str_of(job->job_name)),
                     LOG_STR("run_attempt", str_of(job->run_attempt)));
        }
        if (lease_finish(s->redis, LEASE_OVERDUE, str_of(job->key), list.expires_ms,
                         list.at[i].deadline_ms, &why))
            redis_seen(s, false, why.text); /* the same again when the lease has run out */
    }
    size_t n = list.n;
    free(errands);
    overdue_list_clear(&list);
    return n;
}

/* Marks one batch of commits in reconcile. Gives how many there were. */
static size_t due_batch(struct sweep *s)
{
    struct metrics *m = role_metrics(s->role);
    struct leases CLEANUP(leases_clear) list = { .past = 0 };
    struct why why;
    if (lease_take_due(s->redis, LEASE_DUE, clock_wall_ms(), BATCH, &list, &why)) {
        redis_seen(s, false, why.text);
        return 0;
    }
    redis_seen(s, true, NULL);
    metrics_set(m, METRIC_DUE, NULL, (double)list.past);
    const struct view_index_entry *at = list.members.at;
    size_t n = list.members.n;
    struct errand *errands = mem_alloc(n + 1, sizeof(*errands));
    for (size_t i = 0; i < n; i++) {
        errands[i].event = "due_not_published";
        record_publish(s, TOPIC_RECONCILE, str_of(at[i].name), STR_LIT("due"), NULL, &errands[i]);
    }
    all_reported(s);
    for (size_t i = 0; i < n; i++) {
        if (!errands[i].stored) {
            s->due.lost++;
            continue;
        }
        metrics_add(m, METRIC_DUE_MARKED, NULL, 1);
        role_progress(s->role);
        if (lease_finish(s->redis, LEASE_DUE, str_of(at[i].name), list.expires_ms, at[i].at_ms,
                         &why))
            redis_seen(s, false, why.text); /* marked once more than needed */
    }
    free(errands);
    return n;
}

/* ---- jobs into hours ---------------------------------------------------------------------------
 */

/* The lines are read before the jobs are: whoever counts later jobs meanwhile replaces them, and
 * then this count is dropped. *done false: it is. */
static enum err delivery_count(struct redis *r, struct str delivery, struct str repo,
                               int64_t now_ms, int64_t ttl_s, bool *done, struct why *why)
{
    struct buf CLEANUP(buf_clear) before = BUF_INIT(HOURS_TEXT_MAX);
    struct buf CLEANUP(buf_clear) after = BUF_INIT(HOURS_TEXT_MAX);
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    *done = true;
    enum err err = hours_tallied_get(r, delivery, repo, &before, why);
    if (!err)
        err = jobs_of_dispatch(r, delivery, repo, JOBS_MAX, &jobs, why);
    if (err)
        return err;
    tally(jobs.at, jobs.n, &after);
    if (buf_full(&before) || buf_full(&after) || str_eq(buf_str(&before), buf_str(&after)))
        return OK;
    return hours_replace(r, delivery, repo, buf_str(&before), buf_str(&after), now_ms, ttl_s, done,
                         why);
}

enum err sweep_tally(struct redis *r, int64_t now_ms, int64_t ttl_s, size_t most, size_t *n,
                     struct why *why)
{
    struct leases CLEANUP(leases_clear) list = { .past = 0 };
    *n = 0;
    enum err err = lease_take_due(r, LEASE_TALLY, now_ms, most, &list, why);
    for (size_t i = 0; !err && i < list.members.n; i++) {
        const struct view_index_entry *at = &list.members.at[i];
        struct str repo = str_of(at->name), delivery = STR_NONE;
        bool done = true;
        if (str_split(&repo, '/', &delivery))
            err = delivery_count(r, delivery, repo, now_ms, ttl_s, &done, why);
        if (!err && done)
            err = lease_finish(r, LEASE_TALLY, str_of(at->name), list.expires_ms, at->at_ms, why);
        if (err == ERR_REFUSE) {
            log_warn("not_counted", LOG_STR("delivery", delivery), LOG_STR("repo", repo),
                     LOG_STR("error", str_of(why->text)));
            err = OK;
        }
        *n += !err;
    }
    return err;
}

/* One batch at a turn: after a rebuild there are many, and what is overdue must not wait. */
static void tally_batch(struct sweep *s)
{
    struct why why;
    size_t n;
    enum err err =
        sweep_tally(s->redis, clock_wall_ms(), s->reporter->times.ttl_s, BATCH, &n, &why);
    redis_seen(s, !err, err ? why.text : NULL);
    role_alive(s->role);
    s->tally.next_ms = clock_mono_ms() + (err || n == 0 ? DUE_MS : 0);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Batch after batch, until none is left to take. */
static void look_for(struct sweep *s, struct look *what, size_t (*batch)(struct sweep *),
                     int64_t period_ms)
{
    what->lost = 0;
    while (batch(s) > 0 && !s->redis_unavailable && may_write(s))
        role_alive(s->role);
    role_alive(s->role);
    role_lag(s->role, (int64_t)(s->jobs.lost + s->due.lost));
    if (s->redis_unavailable && period_ms > UNAVAILABLE_MS)
        period_ms = UNAVAILABLE_MS;
    if (what->lost > 0 && period_ms > LEASE_SET_MS)
        period_ms = LEASE_SET_MS; /* when they can be leased again */
    what->next_ms = clock_mono_ms() + period_ms;
}

static void turn(struct sweep *s)
{
    struct wake *wake = role_wake(s->role);
    role_alive(s->role);
    wake_reset(wake);
    topic_writer_poll(s->writer, 0); /* sees a producer that is broken, and makes it anew */
    if (may_write(s) && clock_mono_ms() >= s->jobs.next_ms)
        look_for(s, &s->jobs, jobs_batch, s->period_ms);
    if (may_write(s) && clock_mono_ms() >= s->due.next_ms)
        look_for(s, &s->due, due_batch, DUE_MS);
    if (may_write(s) && clock_mono_ms() >= s->tally.next_ms)
        tally_batch(s);
    int64_t next = s->jobs.next_ms < s->due.next_ms ? s->jobs.next_ms : s->due.next_ms;
    if (s->tally.next_ms < next)
        next = s->tally.next_ms;
    int64_t left = next - clock_mono_ms();
    if (may_write(s) && left > 0)
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
    if (!err)
        err = topic_writer_new(&s->writer, &writer, why);
    if (!err)
        err = role_wait_topics(s->role, s->writer, topics, 2, why);
    return err;
}

enum err sweep_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct sweep s = { .reporter = reporter, .role = role };
    enum err err = sweep_open(&s, why);
    if (!err) {
        role_ready(role, NULL);
        metrics_set(role_metrics(role), METRIC_REDIS_UP, METRIC_LABELS(STR_LIT("sweep")), 1);
    }
    while (!err && !role_stopping(role)) {
        turn(&s);
        if (topic_writer_fatal(s.writer, why))
            err = ERR_STOP;
    }
    topic_writer_free(s.writer);
    redis_free(s.redis);
    return err;
}

#include "reconcile.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/daemon/config.h"
#include "../common/model/ids.h"
#include "park.h"

#define BUSY_MAX       8 /* commits worked on at the same time */
#define IN_HAND_MAX    1000
#define FAILURES_MAX   3 /* in hand, before a delay topic */
#define FAILED_WAIT_MS 3000
#define REDIS_WAIT_MS  500
#define HELD_MIN_MS    20
#define HELD_MAX_MS    60000 /* in hand, for our budget */
#define TICK_MS        1000
#define FLUSH_MS       5000

/* ---- targets --------------------------------------------------------------------------------- */

static bool key_parse(struct target *t)
{
    struct str key = str_of(t->key);
    ptrdiff_t slash = str_find(key, '/');
    if (slash < 0)
        return false;
    struct str sha = { key.ptr, (size_t)slash }, repo = str_from(key, (size_t)slash + 1);
    return sha_valid(sha) && repo_valid(repo) && str_copy(t->head_sha, sizeof(t->head_sha), sha) &&
           str_copy(t->repo, sizeof(t->repo), repo);
}

static void target_free(struct target *t)
{
    HASH_DEL(t->reconcile->targets, t);
    free(t->key);
    free(t);
}

/* The records of the last pass are done; those that came meanwhile want another one. */
static void target_done(struct target *t)
{
    struct dirty *d, *next;
    DL_FOREACH_SAFE(t->records, d, next)
    {
        if (!d->taken)
            continue;
        record_done(d->record);
        DL_DELETE(t->records, d);
        free(d);
    }
    role_progress(t->reconcile->role);
    t->failures = 0;
    t->state = TARGET_DIRTY;
    if (!t->records)
        target_free(t);
}

bool target_is_old(const struct target *t)
{
    return standstill_since(&t->reconcile->standstill, t->began_ms, clock_mono_ms());
}

static void target_wait(struct target *t, int64_t ms)
{
    t->state = TARGET_WAITING;
    t->due_ms = clock_mono_ms() + ms;
}

/* ---- moving aside ---------------------------------------------------------------------------- */

static void parked(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct target *t = opaque;
    (void)at;
    if (!t->records) { /* its partition was taken away meanwhile */
        target_free(t);
        return;
    }
    if (err == OK) {
        struct metrics *m = role_metrics(t->reconcile->role);
        if (t->later)
            metrics_add(m, METRIC_DELAYED, METRIC_LABELS(str_of(t->class)), 1);
        else
            metrics_add(m, METRIC_DLQ, METRIC_LABELS(STR_LIT("reconcile"), str_of(t->class)), 1);
        target_done(t);
        return;
    }
    log_warn("not_parked", LOG_STR("error", str_of(reason)));
    target_wait(t, FAILED_WAIT_MS);
}

/* One record speaks for all that were taken: they have the same key. */
static void target_park(struct target *t, const char *class, const char *error)
{
    struct reconcile *r = t->reconcile;
    const struct record *record = t->records->record;
    struct why why;
    bool later = str_is(str_of(class), "exhausted") && park_delay_left(park_count(record));
    t->state = TARGET_PARKING;
    t->later = later;
    t->class = later ? "retry" : class;
    enum err err =
        later ? park_in_delay(r->writer, &r->reporter->topics, record, error, parked, t, &why)
              : park_in_dlq(r->writer, &r->reporter->topics, record, class, error, parked, t, &why);
    if (err != OK) {
        target_wait(t, FAILED_WAIT_MS);
        return;
    }
    log_warn("parked", LOG_STR("class", str_of(later ? "delayed" : class)),
             LOG_STR("key", str_of(t->key)), LOG_STR("error", str_of(error)));
}

/* Behind all that had no turn yet. */
static void target_behind(struct target *t)
{
    struct reconcile *r = t->reconcile;
    HASH_DEL(r->targets, t);
    HASH_ADD_KEYPTR(hh, r->targets, t->key, strlen(t->key), t);
}

/* Our budget has no room for the rest of it for a while: in hand while that is short, and any news
 * of it is looked at at once. */
static void target_hold(struct target *t, int64_t until_ms, const char *reason)
{
    struct reconcile *r = t->reconcile;
    int64_t ms = until_ms - clock_mono_ms();
    struct why why;
    log_debug("check_runs_held", LOG_STR("key", str_of(t->key)), LOG_INT("wait_ms", ms),
              LOG_STR("reason", str_of(reason)));
    t->failures = 0;
    target_behind(t);
    if (ms > HELD_MAX_MS && park_until(r->writer, &r->reporter->topics, t->records->record, ms,
                                       reason, parked, t, &why) == OK) {
        t->state = TARGET_PARKING;
        t->later = true;
        t->class = "budget";
        return;
    }
    target_wait(t, ms > HELD_MAX_MS ? HELD_MAX_MS : ms < HELD_MIN_MS ? HELD_MIN_MS : ms);
    t->held = true;
}

/* While GitHub is away nothing is counted, and the next probe is another's: one that always fails
 * cannot keep it away. */
static void target_failed(struct target *t, const char *reason)
{
    bool away = outage_is(&t->reconcile->outage);
    if (!away)
        t->failures++;
    log_warn("check_runs_failed", LOG_STR("key", str_of(t->key)), LOG_STR("error", str_of(reason)),
             LOG_INT("failures", t->failures));
    if (away)
        target_behind(t);
    if (t->failures < FAILURES_MAX)
        target_wait(t, FAILED_WAIT_MS);
    else
        target_park(t, "exhausted", reason);
}

/* ---- passes ---------------------------------------------------------------------------------- */

void pass_ended(struct target *t, enum pass_end end, const char *reason)
{
    struct reconcile *r = t->reconcile;
    r->n_busy--;
    if (!t->records) { /* its partition was taken away meanwhile */
        target_free(t);
        return;
    }
    switch (end) {
    case PASS_EQUAL:
        outage_unasked(&r->outage); /* else an answer has ended it */
        target_done(t);
        return;
    case PASS_WAIT:
        target_wait(t, REDIS_WAIT_MS);
        log_debug("check_runs_waiting", LOG_STR("key", str_of(t->key)),
                  LOG_STR("reason", str_of(reason)));
        return;
    case PASS_FAILED:
        target_failed(t, reason);
        return;
    case PASS_HELD:
        target_hold(t, r->held_until_ms, reason);
        return;
    case PASS_REFUSED:
        target_park(t, "refused", reason);
        return;
    }
}

static void target_start(struct target *t)
{
    struct dirty *d;
    DL_FOREACH(t->records, d)
    {
        d->taken = true;
    }
    if (!*t->repo) {
        target_park(t, "poison", "the key is not <head_sha>/<owner>/<repo>");
        return;
    }
    t->state = TARGET_BUSY;
    t->held = false;
    t->began_ms = clock_mono_ms();
    t->reconcile->n_busy++;
    pass_start(t);
}

/* Starts what is due. GitHub's limits hold for all alike. */
static void targets_start(struct reconcile *r)
{
    struct target *t, *next;
    int64_t now = clock_mono_ms();
    bool limited = now < r->limited_until_ms, held = false;
    HASH_ITER(hh, r->targets, t, next)
    {
        if (t->state == TARGET_WAITING && now >= t->due_ms)
            t->state = TARGET_DIRTY;
        held |= t->state == TARGET_WAITING && t->held;
        if (t->state != TARGET_DIRTY || limited || now < r->view_look_ms || r->n_busy >= BUSY_MAX)
            continue;
        if (!outage_allows(&r->outage, now))
            break;
        target_start(t);
        if (r->view_lost) /* one asks for all */
            r->view_look_ms = now + REDIS_WAIT_MS;
    }
    role_waiting(r->role, limited || r->view_lost || outage_is(&r->outage) ||
                              (held && !r->n_busy) || !redis_is_up(r->redis));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void record_take(struct reconcile *r, struct record *record)
{
    struct target *t;
    struct dirty *d = mem_alloc(1, sizeof(*d));
    struct str key = record->key.ptr ? record->key : STR_LIT("");
    HASH_FIND(hh, r->targets, key.ptr, key.len, t);
    if (!t) {
        t = mem_alloc(1, sizeof(*t));
        t->reconcile = r;
        t->key = str_dup(key);
        if (!key_parse(t))
            t->repo[0] = '\0';
        HASH_ADD_KEYPTR(hh, r->targets, t->key, key.len, t);
    }
    d->record = record;
    DL_APPEND(t->records, d);
    if (t->state == TARGET_WAITING && t->held)
        t->state = TARGET_DIRTY;
}

static void records_read(struct reconcile *r)
{
    struct record *record;
    bool pause = topic_reader_in_hand(r->reader) >= IN_HAND_MAX;
    if (pause != r->paused)
        topic_reader_pause(r->reader, pause);
    r->paused = pause;
    while ((record = topic_reader_next(r->reader, 0))) {
        record_take(r, record);
        if (topic_reader_in_hand(r->reader) >= IN_HAND_MAX)
            return;
    }
}

static bool concerns(const struct target *t, const struct topic_position *at, size_t n)
{
    for (size_t i = 0; i < n; i++) /* records of one key lie in one partition */
        if (t->records && t->records->record->at.partition == at[i].partition)
            return true;
    return false;
}

static bool busy_among(const struct reconcile *r, const struct topic_position *at, size_t n)
{
    for (const struct target *t = r->targets; t; t = t->hh.next)
        if (concerns(t, at, n) && (t->state == TARGET_BUSY || t->state == TARGET_PARKING))
            return true;
    return false;
}

/* Frees the records; a target whose call is under way is freed when that ends. */
static void target_drop(struct target *t)
{
    struct dirty *d, *next;
    t->began_ms = -1;
    DL_FOREACH_SAFE(t->records, d, next)
    {
        record_drop(d->record);
        DL_DELETE(t->records, d);
        free(d);
    }
    if (t->state != TARGET_BUSY && t->state != TARGET_PARKING)
        target_free(t);
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms)
{
    struct reconcile *r = opaque;
    struct target *t, *next;
    r->revoking = true;
    while (busy_among(r, partitions, n) && clock_mono_ms() < deadline_mono_ms) {
        http_client_poll(r->client, NULL, 50);
        topic_writer_poll(r->writer, 0);
        role_alive(r->role);
        standstill_look(&r->standstill, clock_mono_ms());
    }
    r->revoking = false;
    HASH_ITER(hh, r->targets, t, next)
    {
        if (concerns(t, partitions, n))
            target_drop(t);
    }
}

static void turn(struct reconcile *r)
{
    role_alive(r->role);
    standstill_look(&r->standstill, clock_mono_ms());
    wake_reset(role_wake(r->role));
    records_read(r);
    targets_start(r);
    topic_writer_poll(r->writer, 0);
    role_reads(r->role, r->reader);
    github_tell_budget(r->github, role_metrics(r->role), &reporter_budget_families,
                       STR_LIT("reconcile"));
    http_client_poll(r->client, role_wake(r->role), TICK_MS);
}

static void reconcile_close(struct reconcile *r)
{
    struct why why;
    if (r->writer && topic_writer_flush(r->writer, FLUSH_MS, &why) != OK)
        log_warn("reconcile_flush_incomplete", LOG_STR("error", str_of(why.text)));
    topic_reader_free(r->reader);
    github_free(r->github);
    http_client_free(r->client);
    topic_writer_free(r->writer);
    struct target *t, *next;
    HASH_ITER(hh, r->targets, t, next)
    {
        target_free(t);
    }
    redis_free(r->redis);
}

static enum err github_open(struct reconcile *r, struct why *why)
{
    const struct config *config = role_config(r->role);
    const struct http_client_options client = { .user_agent = "crcr-reporter",
                                                .only_fresh = true,
                                                .ca_file = r->reporter->ca_file,
                                                .allow_http = r->reporter->allow_http };
    enum err err = http_client_new(&r->client, &client, why);
    if (err != OK)
        return err;
    const struct github_options options = {
        .api_url = config_text(config, "CRCR_GITHUB_API_URL"),
        .app_id = config_text(config, "GITHUB_APP_ID"),
        .key = r->reporter->app_key,
        .client = r->client,
        .budget = r->reporter->budget,
        .redis = r->redis, /* nobody waits for a reply there while a call is started */
    };
    return github_new(&r->github, &options, why);
}

static enum err reconcile_open(struct reconcile *r, struct why *why)
{
    const struct reporter *reporter = r->reporter;
    const struct topics *topics = &reporter->topics;
    const char *const inputs[] = { topics->name[TOPIC_RECONCILE] };
    const char *const all[] = { inputs[0],
                                topics->name[TOPIC_ALLOWLIST],
                                topics->name[TOPIC_DELAY_1M],
                                topics->name[TOPIC_DELAY_10M],
                                topics->name[TOPIC_DELAY_1H],
                                topics->name[TOPIC_DLQ] };
    const struct topic_writer_options writer = { .kafka = reporter->kafka,
                                                 .wake = role_wake(r->role) };
    const struct topic_reader_options reader = {
        .kafka = reporter->kafka,
        .group = topics->group[GROUP_RECONCILE],
        .topics = inputs,
        .n_topics = 1,
        .wake = role_wake(r->role),
        .revoked = revoked,
        .opaque = r,
    };
    enum err err = redis_new(&r->redis, &reporter->redis, why);
    if (err == OK)
        err = github_open(r, why);
    if (err == OK)
        err = topic_writer_new(&r->writer, &writer, why);
    if (err == OK)
        err = role_wait_topics(r->role, r->writer, all, sizeof(all) / sizeof(all[0]), why);
    if (err == OK)
        reporter_wait_allowlist(reporter, r->role);
    if (err == OK)
        err = topic_reader_new(&r->reader, &reader, why);
    return err;
}

enum err reconcile_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct reconcile r = { .reporter = reporter, .role = role };
    role_declare_dlq(role, METRIC_DLQ, STR_LIT("reconcile"));
    enum err err = reconcile_open(&r, why);
    if (err == OK)
        role_ready(role, NULL);
    while (err == OK && !role_stopping(role)) {
        turn(&r);
        if (topic_reader_fatal(r.reader, why) || topic_writer_fatal(r.writer, why))
            err = ERR_STOP;
    }
    reconcile_close(&r);
    return err;
}

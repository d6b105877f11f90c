#include "reconcile.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/daemon/config.h"
#include "../common/model/ids.h"
#include "../common/worker/retry_ladder.h"

#define BUSY_REPO_MAX  (BUSY_MAX / 2) /* … of one downstream, so that there is room for others */
#define IN_HAND_MAX    1000
#define FAILURES_MAX   3 /* in hand, before a delay topic */
#define FAILED_WAIT_MS 3000
#define REDIS_WAIT_MS  500
#define HELD_MIN_MS    20
#define HELD_MAX_MS    60000 /* in hand, for our budget */
#define TICK_MS        1000

/* ---- targets --------------------------------------------------------------------------------- */

/* NULL: the key is not <head_sha>/<owner>/<repo>. */
static struct target *target_new(struct reconcile *r, struct str key)
{
    ptrdiff_t slash = str_find(key, '/');
    struct str sha = { key.ptr, slash < 0 ? 0 : (size_t)slash };
    struct str repo = str_from(key, sha.len + 1);
    if (!sha_valid(sha) || !repo_valid(repo))
        return NULL;
    struct target *t = mem_alloc(1, sizeof(*t));
    t->reconcile = r;
    t->key = str_dup(key);
    str_copy(t->head_sha, sizeof(t->head_sha), sha);
    str_copy(t->repo, sizeof(t->repo), repo);
    HASH_ADD_KEYPTR(hh, r->targets, t->key, key.len, t);
    return t;
}

/* The target goes with its last record. */
static void dirty_free(struct dirty *d)
{
    struct target *t = d->target;
    DL_DELETE(t->records, d);
    free(d);
    if (t->records || t->state == TARGET_BUSY)
        return;
    HASH_DEL(t->reconcile->targets, t);
    free(t->key);
    free(t);
}

/* The records of the last pass are done; those that came meanwhile want another one. */
static void target_done(struct target *t)
{
    struct dirty *d, *next;
    t->failures = 0;
    t->state = TARGET_DIRTY;
    DL_FOREACH_SAFE(t->records, d, next)
    {
        if (!d->taken)
            continue;
        work_done(d->work);
        dirty_free(d);
    }
}

bool target_is_of_self_reports(const struct target *t)
{
    return str_eq_nocase(str_of(t->repo), str_of(t->reconcile->reporter->upstream_repo));
}

bool target_is_old(const struct target *t)
{
    return t->leaving || !worker_may_act(t->reconcile->worker, t->began_ms);
}

static void target_wait(struct target *t, int64_t ms)
{
    t->state = TARGET_WAITING;
    t->due_ms = clock_mono_ms() + ms;
}

/* ---- moving aside ---------------------------------------------------------------------------- */

/* One record speaks for all that were taken: they have the same key. The ladder begins at its
 * second step: the passes in hand were the first. */
static void target_park(struct target *t, const char *class, const char *error)
{
    struct work *work = t->records->work;
    int64_t attempt = headers_get_i64(&work->record->headers, "attempt", 1);
    int next = attempt < 2 ? 2 : (int)attempt + 1;
    const struct park park = {
        .wait_ms = retry_wait_ms(next), .attempt = next, .error = error, .label = "retry"
    };
    if (str_is(str_of(class), "exhausted") && park.wait_ms > 0)
        work_park(work, &park);
    else
        work_dead(work, class, error);
    target_done(t);
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
    int64_t ms = until_ms - clock_mono_ms();
    log_debug("check_runs_held", LOG_STR("key", str_of(t->key)), LOG_INT("wait_ms", ms),
              LOG_STR("reason", str_of(reason)));
    t->failures = 0;
    target_behind(t);
    if (ms > HELD_MAX_MS) {
        const struct park park = { .wait_ms = ms, .error = reason, .label = "budget" };
        work_park(t->records->work, &park);
        target_done(t);
        return;
    }
    target_wait(t, ms < HELD_MIN_MS ? HELD_MIN_MS : ms);
    t->held = true;
}

/* When GitHub is asked whether it is back; 0: it is available. */
static int64_t probe_ms(const struct reconcile *r)
{
    return gate_probe_ms(r->reporter->gate, str_of(r->reporter->upstream_repo));
}

/* While GitHub is unavailable no failure is counted, and the next probe is for another target: one
 * that always fails cannot keep GitHub's breaker open. */
static void target_failed(struct target *t, const char *reason)
{
    bool unavailable = probe_ms(t->reconcile) > 0;
    if (!unavailable)
        t->failures++;
    log_warn("check_runs_failed", LOG_STR("key", str_of(t->key)), LOG_STR("error", str_of(reason)),
             LOG_INT("failures", t->failures));
    if (unavailable)
        target_behind(t);
    if (t->failures < FAILURES_MAX)
        target_wait(t, FAILED_WAIT_MS);
    else
        target_park(t, "exhausted", reason);
}

static void busy_remove(struct reconcile *r, const struct target *t)
{
    for (size_t i = 0; i < r->n_busy; i++)
        if (r->busy[i] == t)
            r->busy[i] = r->busy[--r->n_busy];
}

/* ---- passes ---------------------------------------------------------------------------------- */

void pass_ended(struct target *t, enum pass_end end, int64_t held_until_ms, const char *reason)
{
    struct reconcile *r = t->reconcile;
    busy_remove(r, t);
    t->state = TARGET_DIRTY;
    t->leaving = false;
    switch (end) {
    case PASS_EQUAL:
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
        target_hold(t, held_until_ms, reason);
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
    t->state = TARGET_BUSY;
    t->held = false;
    t->began_ms = clock_boot_ms();
    t->reconcile->busy[t->reconcile->n_busy++] = t;
    pass_start(t);
}

static size_t busy_of(const struct reconcile *r, const char *repo)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_busy; i++)
        n += str_eq_nocase(str_of(r->busy[i]->repo), str_of(repo));
    return n;
}

/* Starts what is due. GitHub's limits hold for all alike. */
static void targets_start(struct reconcile *r)
{
    struct target *t, *next;
    int64_t now = clock_mono_ms();
    bool limited = now < r->limited_until_ms, held = false;
    bool ours = worker_may_act(r->worker, clock_boot_ms());
    int64_t probe = probe_ms(r);
    HASH_ITER(hh, r->targets, t, next)
    {
        if (t->state == TARGET_WAITING && now >= t->due_ms)
            t->state = TARGET_DIRTY;
        held |= t->state == TARGET_WAITING && t->held;
        if (t->state != TARGET_DIRTY || !ours || limited || now < r->view_look_ms ||
            r->n_busy >= BUSY_MAX || busy_of(r, t->repo) >= BUSY_REPO_MAX)
            continue;
        if (now < probe)
            break;
        target_start(t);
        probe = probe_ms(r);
        if (r->view_lost) /* one asks for all */
            r->view_look_ms = now + REDIS_WAIT_MS;
    }
    role_waiting(r->role, limited || !ours || r->view_lost || probe > 0 || (held && !r->n_busy) ||
                              !redis_is_up(r->redis));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void reconcile_take(void *opaque, struct work *work)
{
    struct reconcile *r = opaque;
    struct target *t;
    struct str key = work->record->key.ptr ? work->record->key : STR_LIT("");
    HASH_FIND(hh, r->targets, key.ptr, key.len, t);
    if (!t)
        t = target_new(r, key);
    if (!t) {
        work_dead(work, "poison", "the key is not <head_sha>/<owner>/<repo>");
        work_done(work);
        return;
    }
    /* One that waits for a pass already speaks for this one too: else a commit that is held fills
     * the hand, and no other is read. Of self-reports each may pay for the pass. */
    struct dirty *last = t->records ? t->records->prev : NULL;
    if (last && !last->taken && !target_is_of_self_reports(t)) {
        work_done(work);
    } else {
        struct dirty *d = mem_alloc(1, sizeof(*d));
        d->target = t;
        d->work = work;
        work->user = d;
        DL_APPEND(t->records, d);
    }
    if (t->state == TARGET_WAITING && t->held)
        t->state = TARGET_DIRTY;
}

static void tell_breakers(const struct reconcile *r)
{
    struct gate_news news;
    while (gate_news(r->reporter->gate, &news))
        if (news.open)
            log_warn("github_unavailable", LOG_STR("account", str_of(news.account)),
                     LOG_STR("error", str_of(news.error)), LOG_INT("probe_ms", GATE_PROBE_MS));
        else
            log_info("github_back", LOG_STR("account", str_of(news.account)));
}

static int reconcile_tick(void *opaque)
{
    struct reconcile *r = opaque;
    targets_start(r);
    tell_breakers(r);
    github_report(r->github, role_metrics(r->role), &reporter_budget_families,
                  STR_LIT("reconcile"));
    return TICK_MS;
}

/* The call under way ends, no other begins. */
static void reconcile_drop(void *opaque, struct work *work)
{
    struct dirty *d = work->user;
    struct target *t = d->target;
    (void)opaque;
    if (t->state == TARGET_BUSY) {
        t->leaving = true;
        return;
    }
    work_drop(work);
    dirty_free(d);
}

static void reconcile_work_forget(void *opaque, struct work *work)
{
    struct dirty *d = work->user;
    (void)opaque;
    d->target->state = TARGET_DIRTY; /* nothing is under way any more */
    dirty_free(d);
}

static bool reconcile_full(void *opaque)
{
    const struct reconcile *r = opaque;
    return worker_in_hand(r->worker) >= IN_HAND_MAX;
}

static enum err reconcile_open(struct reconcile *r, struct why *why)
{
    static const enum topic reads[] = { TOPIC_RECONCILE };
    static const enum topic writes[] = { TOPIC_CALLBACKS, TOPIC_RDELAY_1M, TOPIC_RDELAY_10M,
                                         TOPIC_RDELAY_1H };
    static const struct worker_role does = { .take = reconcile_take,
                                             .tick = reconcile_tick,
                                             .drop = reconcile_drop,
                                             .forget = reconcile_work_forget,
                                             .full = reconcile_full };
    const struct reporter *reporter = r->reporter;
    const struct config *config = role_config(r->role);
    const struct http_client_options client = { .user_agent = "crcr-reporter",
                                                .ca_file = reporter->ca_file };
    enum err err = redis_new(&r->redis, &reporter->redis, why);
    if (!err)
        err = http_client_new(&r->client, &client, why);
    if (err)
        return err;
    const struct github_options github = {
        .api_url = config_text(config, "CRCR_GITHUB_API_URL"),
        .app_id = config_text(config, "GITHUB_APP_ID"),
        .key = reporter->app_key,
        .client = r->client,
        .gate = reporter->gate,
        .redis = r->redis, /* nobody waits for a reply there while a call is started */
    };
    const struct worker_options worker = {
        .role = r->role,
        .kafka = &reporter->kafka,
        .topics = &reporter->topics,
        .group = GROUP_RECONCILE,
        .reads = reads,
        .n_reads = 1,
        .writes = writes,
        .n_writes = sizeof(writes) / sizeof(writes[0]),
        .http = r->client,
        .metrics = reporter_worker_metrics,
        .does = &does,
        .opaque = r,
    };
    err = github_new(&r->github, &github, why);
    if (!err)
        err = worker_new(&r->worker, &worker, why);
    if (err)
        return err;
    reporter_wait_allowlist(reporter, r->role);
    return worker_read(r->worker, why);
}

enum err reconcile_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct reconcile r = { .reporter = reporter, .role = role };
    enum err err = reconcile_open(&r, why);
    if (!err)
        err = worker_run(r.worker, why);
    github_free(r.github);
    http_client_free(r.client);
    worker_free(r.worker);
    redis_free(r.redis);
    known_cache_clear(&r.known);
    return err;
}

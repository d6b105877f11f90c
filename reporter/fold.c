#include "fold.h"

#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/view/claims.h"
#include "../common/view/dispatches.h"
#include "../common/view/epoch.h"
#include "../common/view/pull_requests.h"
#include "../common/view/quota.h"

#define BATCH           256  /* facts folded in one round trip */
#define FACTS_MAX       2000 /* in hand over all partitions */
#define TICK_MS         1000
#define PENDING_LOOK_MS 1000
#define PENDING_HOLD_MS 10000
#define UNAVAILABLE_MS  200
#define MEMORY_LOOK_MS  1000
/* What is not published by then is given up, and folded again by whoever has the partition. */
#define PUBLISHED_MS    3000

/* ---- Redis ---------------------------------------------------------------------------------- */

static void report_ready(struct fold *f)
{
    worker_not_ready(f->worker, f->redis_unavailable ? "Redis is unavailable"
                                : f->consistent      ? NULL
                                                     : "the view is being rebuilt");
}

static void redis_seen(struct fold *f, bool up, const char *reason)
{
    if (up != f->redis_unavailable)
        return;
    f->redis_unavailable = !up;
    report_ready(f);
    reporter_redis_seen(f->role, up, reason);
    if (up)
        rebuild_look(f->rebuild); /* its last look may have met a Redis that was unavailable */
}

bool fold_is_of_this_fact(enum err err, const struct redis *redis)
{
    return err == ERR_REFUSE && redis_failed_with(redis, "WRONGTYPE");
}

static void view_seen(struct fold *f, bool consistent)
{
    if (consistent == f->consistent)
        return;
    f->consistent = consistent;
    report_ready(f);
    if (!consistent)
        rebuild_look(f->rebuild);
}

/* What a failed call to Redis means: it is unavailable, or it will never take this fact, which then
 * steps aside. */
static void call_failed(struct fold *f, struct fact *fact, enum err err, const struct why *why)
{
    if (fold_is_of_this_fact(err, f->redis))
        fact_refuse(fact, "refused", why->text);
    else if (err == ERR_REFUSE && view_is_inconsistent(f->redis))
        view_seen(f, false);
    else
        redis_seen(f, false, why->text);
}

/* ---- callbacks that came before anyone knew of their dispatch ------------------------------- */

enum err fold_target_fill(struct redis *redis, struct result_record *job, bool *found,
                          struct why *why)
{
    struct str delivery = str_of(job->delivery_id), repo = str_of(job->repo);
    struct dispatch_view view;
    struct dispatch_record record;
    enum err err = dispatch_view_get(redis, delivery, repo, found, &view, why);
    if (err)
        return err;
    bool folded = *found && view.dispatched_ms > 0;
    if (!folded) /* its outcome is not, but it may have a claim */
        err = dispatch_record_get(redis, delivery, repo, found, &record, why);
    if (err || !*found)
        return err;
    const char *head_sha = folded ? view.head_sha : record.head_sha;
    job->pr_number = folded ? view.pr : record.pr;
    job->dispatched_ms = folded ? view.dispatched_ms : record.dispatched_ms;
    free(job->head_sha);
    job->head_sha = *head_sha ? mem_dup(head_sha) : NULL;
    return OK;
}

/* True when the dispatch of a pending callback is known now and filled in. Otherwise the fact waits
 * (up to 10 s, looking each second) or steps aside. */
static bool pending_resolve(struct fold *f, struct fact *fact)
{
    struct why why;
    bool found = false;
    enum err err = fold_target_fill(f->redis, &fact->callback.job, &found, &why);
    if (err) {
        call_failed(f, fact, err, &why);
        return false;
    }
    fact->callback.pending = !found;
    if (found)
        return true;
    int64_t now = clock_mono_ms();
    if (fact->give_up_ms == 0)
        fact->give_up_ms = now + PENDING_HOLD_MS;
    fact->state = FACT_WAITING;
    if (now < fact->give_up_ms) {
        fact->look_again_ms = now + PENDING_LOOK_MS;
        return false;
    }
    fact_refuse(fact, "refused", "no dispatch known of this delivery to this repository");
    if (headers_get_i64(&fact->record->headers, "attempt", 1) <= 1) /* once, before the DLQ */
        fact->step = FACT_TO_DELAY;
    return false;
}

/* ---- how much a downstream may keep --------------------------------------------------------- */

static size_t downstreams(const struct reporter *r)
{
    const struct allowlist_version *version = allowlist_feed_get(r->feed);
    size_t n = 0;
    for (size_t i = 0; i < allowlist_size(version->list); i++)
        n += allowlist_at(version->list, i)->level > 1;
    allowlist_feed_release(r->feed, version);
    return n;
}

/* Once a second, while no replies are outstanding. */
static void quota_look(struct fold *f, int64_t now)
{
    struct view_memory memory;
    const struct redis_value *v;
    struct why why;
    bool had_room = f->times.quota > 0;
    if (now < f->memory_look_ms)
        return;
    f->memory_look_ms = now + MEMORY_LOOK_MS;
    if (redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("INFO")), &why) ||
        !view_memory_read(v->text, &memory))
        return;
    f->times.quota = view_quota(&memory, downstreams(f->reporter));
    if (had_room && !f->times.quota)
        log_error("view_full", LOG_INT("used_bytes", memory.used), LOG_INT("maxmemory", memory.max),
                  LOG_STR("hint", STR_LIT("new jobs go to the DLQ as refused; raise Redis's "
                                          "maxmemory or lower CRCR_STATUS_TTL, then replay "
                                          "them")));
    else if (!had_room && f->times.quota)
        log_info("view_has_room", LOG_INT("used_bytes", memory.used),
                 LOG_INT("maxmemory", memory.max));
}

/* ---- folding -------------------------------------------------------------------------------- */

static enum err fact_queue(struct fold *f, struct fact *fact, struct why *why)
{
    const struct view_times *times = &f->times;
    const struct outcome *o = &fact->outcome;
    enum err err;
    switch (fact->kind) {
    case FACT_CALLBACK:
        return job_fold_queue(f->redis, &fact->callback.job, fact->callback.received_ms, times,
                              why);
    case FACT_OUTCOME:
    case FACT_CLAIM: /* who called without Redis could not store its claim there */
        err =
            claim_restore_queue(f->redis, o, clock_wall_ms() - o->at_ms, &fact->claim_queued, why);
        if (err || fact->kind == FACT_CLAIM)
            return err;
        return dispatch_fold_queue(f->redis, o, times, why);
    case FACT_PUSH:
        return main_fold_queue(f->redis, &fact->push, times, why);
    default:
        return pr_fold_queue(f->redis, &fact->pr, times, why);
    }
}

static enum err outcome_collect(struct fold *f, const struct fact *fact, struct why *why)
{
    struct why of_fold;
    enum err claim = fact->claim_queued ? claim_end_collect(f->redis, why) : OK;
    if (fact->kind == FACT_CLAIM)
        return claim;
    enum err fold = view_fold_collect(f->redis, claim ? &of_fold : why);
    return claim ? claim : fold;
}

static void folded(struct fold *f, const struct fact *fact, const char *verdict)
{
    static const char *const kinds[] = {
        [FACT_CALLBACK] = "callback",   [FACT_OUTCOME] = "dispatch", [FACT_CLAIM] = "claim",
        [FACT_PULL_REQUEST] = "labels", [FACT_PUSH] = "push",
    };
    metrics_add(role_metrics(f->role), METRIC_FACTS,
                METRIC_LABELS(str_of(kinds[fact->kind]), str_of(verdict)), 1);
    if (fact->kind != FACT_CALLBACK)
        return;
    const struct result_record *job = &fact->callback.job;
    log_info("folded", LOG_STR("delivery", str_of(job->delivery_id)),
             LOG_STR("repo", str_of(job->repo)), LOG_STR("job", str_of(job->job_name)),
             LOG_STR("status", str_of(job_state_name(job->state))),
             LOG_STR("verdict", str_of(verdict)));
}

/* Publishes a row only while the partition is certain to be ours: behind the next owner's it would
 * put a job back. */
static enum err callback_collect(struct fold *f, struct fact *fact, struct why *why)
{
    struct result_record merged;
    enum fold_verdict verdict = FOLD_REPEAT;
    enum err err = job_fold_collect(f->redis, &fact->callback.job, fact->callback.received_ms,
                                    &verdict, &merged, why);
    if (err)
        return err;
    if (verdict == FOLD_FULL) {
        fact_refuse(fact, "refused", "the downstream has used up its part of the view");
    } else if (!worker_may_act(f->worker, f->batch_ms)) {
        /* another may have published what it merged since: folded again, which gives that too */
        log_debug("folded_late", LOG_STR("delivery", str_of(merged.delivery_id)));
    } else {
        FAULT_POINT("fold.folded");
        folded(f, fact, fold_verdict_name(verdict));
        fold_publish(f, fact, &merged);
    }
    result_record_clear(&merged);
    return OK;
}

static void fact_collect(struct fold *f, struct fact *fact)
{
    struct why why;
    bool is_outcome = fact->kind == FACT_OUTCOME || fact->kind == FACT_CLAIM;
    enum err err = fact->kind == FACT_CALLBACK ? callback_collect(f, fact, &why)
                   : is_outcome                ? outcome_collect(f, fact, &why)
                                               : view_fold_collect(f->redis, &why);
    if (err) {
        call_failed(f, fact, err, &why);
        return;
    }
    if (fact->kind != FACT_CALLBACK) {
        folded(f, fact, "merged");
        fold_publish(f, fact, NULL);
    }
    redis_seen(f, true, NULL);
}

/* Its dispatch is to be asked for, which waits for Redis. */
static bool is_pending(const struct fact *fact)
{
    return fact->step == FACT_FOLD && fact->kind == FACT_CALLBACK && fact->callback.pending;
}

/* What needs no fold is done here; true when the fact is to be queued. */
static bool fact_prepare(struct fold *f, struct fact *fact)
{
    if (fact->step != FACT_FOLD) {
        fold_park(f, fact);
        return false;
    }
    if (fact->kind == FACT_NOTHING) {
        fold_finish(f, fact);
        return false;
    }
    if (is_pending(fact))
        return pending_resolve(f, fact) && !f->redis_unavailable && f->consistent;
    return true;
}

static bool is_due(const struct fact *fact, int64_t now)
{
    return fact->state != FACT_PUBLISHING && now >= fact->look_again_ms;
}

/* One round trip for up to BATCH facts. The first failure ends the round; what was not folded is
 * in hand still. */
static void fold_batch(struct fold *f)
{
    struct fact *batch[BATCH], *fact, *next;
    size_t n = 0;
    struct why why;
    bool was_unavailable = f->redis_unavailable;
    int64_t now = clock_mono_ms();
    DL_FOREACH_SAFE(f->facts, fact, next)
    {
        if (n == BATCH || (n > 0 && was_unavailable) ||
            (f->redis_unavailable && !was_unavailable) || !f->consistent)
            break;
        if (!is_due(fact, now))
            continue;
        if (n > 0 && is_pending(fact)) /* not while replies are outstanding: it begins the next */
            break;
        if (!fact_prepare(f, fact))
            continue;
        enum err err = fact_queue(f, fact, &why);
        if (err) {
            call_failed(f, fact, err, &why);
            break;
        }
        if (fact->kind == FACT_CLAIM && !fact->claim_queued) { /* skipped, say: no call, no claim */
            fold_finish(f, fact);
            continue;
        }
        batch[n++] = fact;
    }
    f->batch_ms = clock_boot_ms();
    for (size_t i = 0; i < n; i++)
        fact_collect(f, batch[i]);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Nothing is read while it cannot be folded. */
static bool fold_full(void *opaque)
{
    const struct fold *f = opaque;
    return f->n_facts >= FACTS_MAX || f->redis_unavailable || !f->consistent;
}

static void fold_take(void *opaque, struct work *work)
{
    struct fold *f = opaque;
    struct fact *fact = fact_new(work->record, f->reporter, f->scratch);
    fact->fold = f;
    fact->work = work;
    work->user = fact;
    DL_APPEND(f->facts, fact);
    f->n_facts++;
}

/* What was put for it may arrive; the rest is folded by the next owner. */
static void fold_drop(void *opaque, struct work *work)
{
    struct fact *fact = work->user;
    if (fact->state == FACT_PUBLISHING)
        return;
    fold_forget(opaque, fact);
    work_drop(work);
}

static void fold_work_forget(void *opaque, struct work *work)
{
    fold_forget(opaque, work->user);
}

static int fold_tick(void *opaque)
{
    struct fold *f = opaque;
    struct fact *fact;
    struct why why;
    size_t due = 0, waiting = 0;
    int64_t now = clock_mono_ms();
    bool ours = worker_may_act(f->worker, clock_boot_ms()), consistent = f->consistent;
    DL_FOREACH(f->facts, fact)
    {
        due += is_due(fact, now);
        waiting += fact->state == FACT_WAITING;
    }
    /* Looks whether the view is consistent, and makes it so. */
    if (rebuild_turn(f->rebuild, &consistent, &why)) {
        redis_seen(f, false, why.text);
    } else {
        if (!consistent || due == 0) /* else the facts show it: a look writes nothing */
            redis_seen(f, true, NULL);
        view_seen(f, consistent);
    }
    role_waiting(f->role, f->redis_unavailable || !f->consistent || !ours);
    if (due > 0 && f->consistent && ours) {
        quota_look(f, now);
        fold_batch(f);
    }
    metrics_set(role_metrics(f->role), METRIC_FACTS_WAITING, NULL, (double)waiting);
    if (rebuild_is_busy(f->rebuild))
        return 0;
    if (f->redis_unavailable || !f->consistent || !ours)
        return UNAVAILABLE_MS;
    return due > 0 ? 0 : TICK_MS;
}

static enum err fold_open(struct fold *f, struct why *why)
{
    static const enum topic reads[] = { TOPIC_CALLBACKS, TOPIC_DISPATCHES, TOPIC_EVENTS };
    static const enum topic writes[] = { TOPIC_RESULTS, TOPIC_RECONCILE, TOPIC_RDELAY_1M };
    static const struct worker_role does = { .take = fold_take,
                                             .tick = fold_tick,
                                             .drop = fold_drop,
                                             .forget = fold_work_forget,
                                             .full = fold_full };
    const struct reporter *r = f->reporter;
    const struct worker_options worker = {
        .role = f->role,
        .kafka = &r->kafka,
        .topics = &r->topics,
        .group = GROUP_FOLD,
        .reads = reads,
        .n_reads = sizeof(reads) / sizeof(reads[0]),
        .writes = writes,
        .n_writes = sizeof(writes) / sizeof(writes[0]),
        .message_timeout_ms = PUBLISHED_MS,
        .lingers = true,
        .metrics = reporter_worker_metrics,
        .does = &does,
        .opaque = f,
    };
    enum err err = redis_new(&f->redis, &r->redis, why);
    if (!err)
        err = worker_new(&f->worker, &worker, why);
    if (err)
        return err;
    f->rebuild = rebuild_new(r, f->role, f->redis, f->scratch);
    reporter_wait_allowlist(r, f->role); /* a label that no tier is known for would be lost */
    report_ready(f);
    metrics_set(role_metrics(f->role), METRIC_REDIS_UP, METRIC_LABELS(STR_LIT("fold")), 1);
    return worker_read(f->worker, why);
}

enum err fold_run(struct role_ctx *role, void *reporter, struct why *why)
{
    const struct reporter *r = reporter;
    struct fold f = { .reporter = r, .role = role, .times = r->times };
    f.times.quota = VIEW_QUOTA_BYTES;
    f.scratch = mem_alloc(1, sizeof(*f.scratch));
    enum err err = fold_open(&f, why);
    if (!err)
        err = worker_run(f.worker, why);
    worker_free(f.worker);
    rebuild_free(f.rebuild);
    redis_free(f.redis);
    free(f.scratch);
    return err;
}

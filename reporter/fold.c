#include "fold.h"

#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/base/standstill.h"
#include "../common/view/claims.h"
#include "../common/view/dispatches.h"
#include "../common/view/epoch.h"
#include "../common/view/labels.h"

#define BATCH        256  /* facts folded in one round trip */
#define FACTS_MAX    2000 /* in hand over all partitions */
#define TICK_MS      1000
#define FULL_MS      2000 /* then the reader is paused, and asked, which keeps its membership */
#define CROWDED_MS   20
#define AWAY_MS      200
#define FLUSH_MS     5000
/* What is not published by then is given up, and folded again by whoever has the partition. */
#define PUBLISHED_MS STANDSTILL_MS

/* ---- Redis ---------------------------------------------------------------------------------- */

static void tell_ready(struct fold *f)
{
    bool ready = !f->redis_away && f->whole;
    role_waiting(f->role, !ready);
    role_ready(f->role, f->redis_away ? "Redis is away"
                        : f->whole    ? NULL
                                      : "the view is being rebuilt");
}

static void redis_seen(struct fold *f, bool up, const char *reason)
{
    if (up != f->redis_away)
        return;
    f->redis_away = !up;
    tell_ready(f);
    metrics_set(role_metrics(f->role), METRIC_REDIS_UP, METRIC_LABELS(STR_LIT("fold")), up);
    if (up) {
        log_info("redis_back", LOG_STR("role", STR_LIT("fold")));
        rebuild_look(f->rebuild); /* its last look may tell of a Redis that was away */
    } else
        log_warn("redis_away", LOG_STR("role", STR_LIT("fold")), LOG_STR("error", str_of(reason)));
}

bool fold_is_of_this_fact(enum err err, const struct why *why)
{
    return err == ERR_REFUSE && str_find_str(str_of(why->text), STR_LIT("WRONGTYPE")) >= 0;
}

static void view_seen(struct fold *f, bool whole)
{
    if (whole == f->whole)
        return;
    f->whole = whole;
    tell_ready(f);
    if (!whole)
        rebuild_look(f->rebuild);
}

void fold_call_failed(struct fold *f, struct fact *fact, enum err err, const struct why *why)
{
    if (fold_is_of_this_fact(err, why))
        fact_refuse(fact, "refused", why->text);
    else if (view_is_not_whole(why))
        view_seen(f, false);
    else
        redis_seen(f, false, why->text);
}

/* ---- folding -------------------------------------------------------------------------------- */

/* Its claim as well: who called while Redis was away could not tell it there. */
static enum err outcome_queue(struct fold *f, struct fact *fact, struct why *why)
{
    const struct outcome *o = &fact->outcome;
    enum err err =
        claim_restore_queue(f->redis, o, clock_wall_ms() - o->at_ms, &fact->claim_queued, why);
    return err ? err : dispatch_fold_queue(f->redis, o, &f->reporter->times, why);
}

static enum err outcome_collect(struct fold *f, const struct fact *fact, struct why *why)
{
    struct why of_fold;
    enum err claim = fact->claim_queued ? claim_end_collect(f->redis, why) : OK;
    enum err fold = dispatch_fold_collect(f->redis, claim ? &of_fold : why);
    return claim ? claim : fold;
}

static enum err fact_queue(struct fold *f, struct fact *fact, struct why *why)
{
    const struct view_times *times = &f->reporter->times;
    switch (fact->kind) {
    case FACT_CALLBACK:
        return job_fold_queue(f->redis, &fact->callback.job, fact->callback.received_ms, times,
                              why);
    case FACT_OUTCOME:
        return outcome_queue(f, fact, why);
    default:
        return labels_fold_queue(f->redis, fact->labels.pr, fact->labels.updated_ms,
                                 fact->labels.received_ms, str_of(fact->labels.in_force),
                                 str_of(fact->labels.head_sha), times, why);
    }
}

static void folded(struct fold *f, const struct fact *fact, const char *verdict)
{
    metrics_add(role_metrics(f->role), METRIC_FACTS,
                METRIC_LABELS(str_of(fact_kind_name(fact->kind)), str_of(verdict)), 1);
    if (fact->kind != FACT_CALLBACK)
        return;
    const struct result_record *job = &fact->callback.job;
    log_info("folded", LOG_STR("delivery", str_of(job->delivery_id)),
             LOG_STR("repo", str_of(job->repo)), LOG_STR("job", str_of(job->job_name)),
             LOG_STR("status", str_of(job_state_name(job->state))),
             LOG_STR("verdict", str_of(verdict)));
}

/* A row leaves while the partition is surely ours, or not at all: behind the next owner's it would
 * put a job back. */
static bool may_publish(const struct fold *f)
{
    return topic_reader_holds(f->reader, PUBLISHED_MS);
}

static enum err callback_collect(struct fold *f, struct fact *fact, struct why *why)
{
    struct result_record merged;
    enum fold_verdict verdict = FOLD_REPEAT;
    enum err err = job_fold_collect(f->redis, &verdict, &merged, why);
    if (err != OK)
        return err;
    if (verdict == FOLD_FULL) {
        fact_refuse(fact, "refused", "the downstream has used up its part of the view");
    } else if (clock_mono_ms() - f->batch_ms > STANDSTILL_MS || !may_publish(f)) {
        /* another may have published what it merged since: folded again, which gives that too */
        log_debug("folded_late", LOG_STR("delivery", str_of(merged.delivery_id)));
    } else {
        FAULT_POINT("fold.folded");
        folded(f, fact, fold_verdict_name(verdict));
        fold_publish_job(f, fact, &merged);
    }
    result_record_clear(&merged);
    return OK;
}

static void fact_collect(struct fold *f, struct fact *fact)
{
    struct why why;
    enum err err;
    switch (fact->kind) {
    case FACT_CALLBACK:
        err = callback_collect(f, fact, &why);
        break;
    case FACT_OUTCOME:
        err = outcome_collect(f, fact, &why);
        if (err == OK) {
            folded(f, fact, "merged");
            fold_publish_outcome(f, fact);
        }
        break;
    default:
        err = labels_fold_collect(f->redis, &why);
        if (err == OK) {
            folded(f, fact, "merged");
            fold_publish_labels(f, fact);
        }
    }
    if (err != OK)
        fold_call_failed(f, fact, err, &why);
    else
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
        fold_publish_parked(f, fact);
        return false;
    }
    if (fact->kind == FACT_NOTHING) {
        fold_finish(f, fact);
        return false;
    }
    if (is_pending(fact))
        return fold_pending_resolve(f, fact) && !f->redis_away && f->whole;
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
    bool was_away = f->redis_away;
    int64_t now = clock_mono_ms();
    DL_FOREACH_SAFE(f->facts, fact, next)
    {
        if (n == BATCH || (n > 0 && was_away) || (f->redis_away && !was_away) || !f->whole)
            break;
        if (!is_due(fact, now))
            continue;
        if (n > 0 && is_pending(fact)) /* not while replies are outstanding: it begins the next */
            break;
        if (!fact_prepare(f, fact))
            continue;
        enum err err = fact_queue(f, fact, &why);
        if (err != OK) {
            fold_call_failed(f, fact, err, &why);
            break;
        }
        batch[n++] = fact;
    }
    f->batch_ms = clock_mono_ms();
    for (size_t i = 0; i < n; i++)
        fact_collect(f, batch[i]);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* True when nothing new is to be read. A pause throws away what librdkafka has fetched, so it is
 * for long waits: Redis away, or no acknowledgement for a while. A short one just does not ask. */
static bool holds_back(struct fold *f)
{
    int64_t now = clock_mono_ms();
    bool full = f->n_facts >= FACTS_MAX;
    if (!full)
        f->full_since_ms = 0;
    else if (f->full_since_ms == 0)
        f->full_since_ms = now;
    bool pause = f->redis_away || !f->whole || (full && now - f->full_since_ms >= FULL_MS);
    if (pause != f->paused)
        topic_reader_pause(f->reader, pause);
    f->paused = pause;
    return full && !pause;
}

static size_t facts_read(struct fold *f)
{
    size_t n = 0;
    struct record *record;
    if (holds_back(f))
        return 0;
    while (n < BATCH && (record = topic_reader_next(f->reader, 0))) {
        struct fact *fact = fact_new(record, f->reporter, f->scratch);
        fact->fold = f;
        DL_APPEND(f->facts, fact);
        f->n_facts++;
        n++;
    }
    return n;
}

/* How many facts are due, and how many wait for their dispatch. */
static size_t facts_due(struct fold *f, size_t *waiting)
{
    struct fact *fact;
    size_t due = 0;
    int64_t now = clock_mono_ms();
    *waiting = 0;
    DL_FOREACH(f->facts, fact)
    {
        due += is_due(fact, now);
        *waiting += fact->state == FACT_WAITING;
    }
    return due;
}

static bool concerns(const struct fact *fact, const struct topic_position *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fact->record && fact->record->at.partition == at[i].partition &&
            str_is(str_of(fact->record->at.topic), at[i].topic))
            return true;
    return false;
}

static void revoked(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms)
{
    struct fold *f = opaque;
    struct fact *fact, *next;
    struct why why;
    int64_t left = deadline_mono_ms - clock_mono_ms();
    if (left > 0 && topic_writer_flush(f->writer, (int)left, &why) != OK)
        log_warn("fold_flush_incomplete", LOG_STR("error", str_of(why.text)));
    DL_FOREACH_SAFE(f->facts, fact, next)
    {
        if (!concerns(fact, partitions, n))
            continue;
        record_drop(fact->record);
        fact->record = NULL;
        if (fact->unacknowledged == 0)
            fold_forget(f, fact);
    }
}

/* Looks whether the view is whole, and makes it so. */
static void view_tend(struct fold *f, size_t due)
{
    struct why why;
    bool whole = f->whole;
    if (rebuild_turn(f->rebuild, &whole, &why) != OK) {
        redis_seen(f, false, why.text);
        return;
    }
    if (!whole || due == 0) /* else it is for the facts to tell: a look writes nothing */
        redis_seen(f, true, NULL);
    view_seen(f, whole);
}

static void turn(struct fold *f)
{
    struct wake *wake = role_wake(f->role);
    size_t waiting, read, due;
    bool ours = may_publish(f);
    role_alive(f->role);
    wake_reset(wake);
    f->crowded = false;
    read = facts_read(f);
    due = facts_due(f, &waiting);
    view_tend(f, due);
    if (due > 0 && f->whole && ours)
        fold_batch(f);
    int reported = topic_writer_poll(f->writer, 0);
    role_reads(f->role, f->reader);
    metrics_set(role_metrics(f->role), METRIC_FACTS_WAITING, NULL, (double)waiting);
    if (rebuild_is_busy(f->rebuild))
        return;
    if (f->redis_away || !f->whole || !ours)
        wake_wait(wake, AWAY_MS);
    else if (f->crowded)
        wake_wait(wake, CROWDED_MS);
    else if (read == 0 && due == 0 && reported == 0)
        wake_wait(wake, TICK_MS);
}

static void fold_close(struct fold *f)
{
    struct why why;
    struct fact *fact, *next;
    if (f->writer && topic_writer_flush(f->writer, FLUSH_MS, &why) != OK)
        log_warn("fold_flush_incomplete", LOG_STR("error", str_of(why.text)));
    topic_reader_free(f->reader);
    topic_writer_free(f->writer);
    DL_FOREACH_SAFE(f->facts, fact, next)
    {
        fold_forget(f, fact);
    }
    rebuild_free(f->rebuild);
    redis_free(f->redis);
    free(f->scratch);
}

static enum err fold_open(struct fold *f, struct why *why)
{
    const struct reporter *r = f->reporter;
    const struct topics *topics = &r->topics;
    const char *const inputs[] = { topics->name[TOPIC_CALLBACKS], topics->name[TOPIC_DISPATCHES],
                                   topics->name[TOPIC_EVENTS] };
    const char *const all[] = { inputs[0],
                                inputs[1],
                                inputs[2],
                                topics->name[TOPIC_ALLOWLIST],
                                topics->name[TOPIC_RESULTS],
                                topics->name[TOPIC_RECONCILE],
                                topics->name[TOPIC_DELAY_1M],
                                topics->name[TOPIC_DLQ] };
    const struct topic_writer_options writer = { .kafka = r->kafka,
                                                 .message_timeout_ms = PUBLISHED_MS,
                                                 .wake = role_wake(f->role) };
    const struct topic_reader_options reader = {
        .kafka = r->kafka,
        .group = topics->group[GROUP_FOLD],
        .topics = inputs,
        .n_topics = sizeof(inputs) / sizeof(inputs[0]),
        .wake = role_wake(f->role),
        .revoked = revoked,
        .opaque = f,
    };
    f->scratch = mem_alloc(1, sizeof(*f->scratch));
    enum err err = redis_new(&f->redis, &r->redis, why);
    if (err == OK)
        err = topic_writer_new(&f->writer, &writer, why);
    if (err == OK)
        err = role_wait_topics(f->role, f->writer, all, sizeof(all) / sizeof(all[0]), why);
    if (err == OK) /* a label that no tier was known for would be done with, and forgotten */
        reporter_wait_allowlist(r, f->role);
    if (err == OK)
        err = topic_reader_new(&f->reader, &reader, why);
    if (err == OK)
        f->rebuild = rebuild_new(r, f->role, f->redis, f->scratch);
    return err;
}

enum err fold_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct fold f = { .reporter = reporter, .role = role };
    role_declare_dlq(role, METRIC_DLQ, STR_LIT("fold"));
    enum err err = fold_open(&f, why);
    if (err == OK) {
        tell_ready(&f);
        metrics_set(role_metrics(role), METRIC_REDIS_UP, METRIC_LABELS(STR_LIT("fold")), 1);
    }
    while (err == OK && !role_stopping(role)) {
        turn(&f);
        if (topic_reader_fatal(f.reader, why) || topic_writer_fatal(f.writer, why))
            err = ERR_STOP;
    }
    fold_close(&f);
    return err;
}

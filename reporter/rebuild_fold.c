/* One record of a rebuild → commands to Redis. The same reading and the same Lua steps as the fold
 * (fact.c, common/view), but no effects: what followed from these records has followed, or will
 * when the fold reads them. */
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/model/ids.h"
#include "../common/view/claims.h"
#include "../common/view/commits.h"
#include "../common/view/dispatches.h"
#include "../common/view/pull_requests.h"
#include "aggregate.h"
#include "ended_runs.h"
#include "fold.h"
#include "rebuild.h"

/* A check run may be open for as long as its job may run, and some time around that. */
#define AROUND_MS 3600000

/* ---- collecting ------------------------------------------------------------------------------ */

static void queued(struct rebuild_fold *f, rebuild_collect_fn *collect, size_t bytes)
{
    f->batch.collect[f->batch.n++] = collect;
    f->batch.bytes += bytes;
}

enum err rebuild_fold_collect(struct rebuild_fold *f, struct why *why)
{
    enum err first = OK;
    for (size_t i = 0; i < f->batch.n; i++) {
        struct why reason;
        enum err err = f->batch.collect[i](f->redis, &reason);
        if (!err || first || fold_is_of_this_fact(err, f->redis))
            continue;
        first = why_set(why, err, "%s", reason.text);
    }
    f->batch.n = f->batch.bytes = 0;
    return first;
}

/* ---- how long it stays ----------------------------------------------------------------------- */

/* As long as it would have stayed had Redis not lost it. False when that is over. */
static bool times_of(const struct rebuild_fold *f, int64_t at_ms, struct view_times *times)
{
    int64_t age_ms = f->now_ms > at_ms ? f->now_ms - at_ms : 0;
    *times = f->reporter->times;
    times->fence = f->fence;
    times->ttl_s -= age_ms / 1000;
    return times->ttl_s > 0;
}

/* ---- results --------------------------------------------------------------------------------- */

static int64_t time_of(const char *text, int64_t otherwise)
{
    int64_t wall_ms;
    struct why why;
    return text && !clock_parse(str_of(text), &wall_ms, &why) ? wall_ms : otherwise;
}

/* Missing are the times of a job that an index had no room for (its clocks then send it there
 * again), and all of it in rows from before the headers: there it comes from the row itself. */
static void fill_gaps(struct result_record *row, int64_t timestamp_ms)
{
    int64_t began = time_of(row->started_at, timestamp_ms);
    int64_t first = job_first_ms(row), last = job_last_ms(row);
    if (row->first_ms < 0)
        row->first_ms = first ? first : began;
    if (row->last_ms < 0)
        row->last_ms = last ? last : timestamp_ms;
    if (row->state == JOB_IN_PROGRESS && row->in_progress_ms < 0)
        row->in_progress_ms = began;
    if (row->top_level < 0)
        row->top_level = row->level;
}

static enum err result_queue(struct rebuild_fold *f, const struct record *record, struct why *why)
{
    struct result_record row;
    struct view_times times;
    struct why ignored;
    if (result_record_from_json(record->value, &row, &ignored))
        return OK;
    result_record_from_headers(&row, &record->headers);
    fill_gaps(&row, record->timestamp_ms);
    enum err err = OK;
    if (row.delivery_id && row.run_attempt && times_of(f, row.last_ms, &times)) {
        err = job_restore_queue(f->redis, &row, &times, why);
        if (!err)
            queued(f, view_fold_collect, record->value.len);
        const char *commit = result_record_is_self(&row) ? result_record_commit(&row) : NULL;
        if (!err && row.level >= 2 && commit) /* whether it exists is asked again */
            rebuild_mark(f->rebuild, commit, f->reporter->upstream_repo, row.repo);
    }
    result_record_clear(&row);
    return err;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* What a pending callback was matched with when it was folded is in its row of results; asked
 * again, a later call of the same dispatch might answer. */
static enum err pending_finish(struct rebuild_fold *f, struct callback_fact *callback, bool *fold,
                               struct why *why)
{
    bool known = false;
    enum err err = rebuild_fold_collect(f, why);
    if (!err)
        err = job_has_fact(f->redis, &callback->job, callback->received_ms, &known, why);
    *fold = false;
    if (err || known)
        return err;
    return fold_target_fill(f->redis, &callback->job, fold, why);
}

static enum err callback_queue(struct rebuild_fold *f, struct fact *fact, struct why *why)
{
    struct callback_fact *callback = &fact->callback;
    const struct result_record *job = &callback->job;
    struct view_times times;
    bool fold = true;
    if (!times_of(f, callback->received_ms, &times))
        return OK;
    if (callback->pending) {
        enum err err = pending_finish(f, callback, &fold, why);
        if (err || !fold) /* not known: the fold had it wait, and put it aside */
            return err;
    }
    enum err err = job_fold_queue(f->redis, job, callback->received_ms, &times, why);
    if (err)
        return err;
    queued(f, view_fold_collect, fact->record->value.len);
    /* Its aggregate check run may wait for the end of the run, or for quiet, and so may an open
     * job: the times at which they were to be looked at again are lost with the view. */
    if (((job->level >= 3 && !result_record_is_self(job)) || job_is_open(job)) && job->head_sha &&
        f->now_ms - callback->received_ms < times.overdue_ms + AROUND_MS)
        rebuild_mark(f->rebuild, job->head_sha, job->repo, NULL);
    return OK;
}

/* ---- dispatches, pull requests, pushes ------------------------------------------------------- */

static enum err outcome_queue(struct rebuild_fold *f, const struct fact *fact, struct why *why)
{
    const struct outcome *o = &fact->outcome;
    struct view_times times;
    bool is_queued;
    int64_t age_ms = f->now_ms > o->at_ms ? f->now_ms - o->at_ms : 0;
    enum err err = claim_restore_queue(f->redis, o, age_ms, &is_queued, why);
    if (!err && is_queued)
        queued(f, claim_end_collect, fact->record->value.len);
    if (err || fact->kind != FACT_OUTCOME || !times_of(f, o->at_ms, &times))
        return err;
    err = dispatch_fold_queue(f->redis, o, &times, why);
    if (!err)
        queued(f, view_fold_collect, fact->record->value.len);
    if (!err && o->level >= 4 && *o->head_sha && age_ms < times.overdue_ms + AROUND_MS)
        rebuild_mark(f->rebuild, o->head_sha, o->repo, NULL);
    return err;
}

static enum err pr_queue(struct rebuild_fold *f, const struct fact *fact, struct why *why)
{
    struct view_times times;
    if (!times_of(f, fact->pr.received_ms, &times))
        return OK;
    enum err err = pr_fold_queue(f->redis, &fact->pr, &times, why);
    if (!err)
        queued(f, view_fold_collect, 0);
    return err;
}

/* The order of the default branch reaches as far back as the topic has events. */
static enum err push_queue(struct rebuild_fold *f, const struct fact *fact, struct why *why)
{
    struct view_times times = f->reporter->times;
    times.fence = f->fence;
    enum err err = main_fold_queue(f->redis, &fact->push, &times, why);
    if (!err)
        queued(f, view_fold_collect, fact->push.n * sizeof(*fact->push.commits));
    return err;
}

/* ---- one record ------------------------------------------------------------------------------ */

enum err rebuild_fold_record(struct rebuild_fold *f, enum rebuild_part part,
                             const struct record *record, struct why *why)
{
    enum err err = OK;
    if (f->batch.n == 0)
        f->now_ms = clock_wall_ms();
    if (part == REBUILD_RESULTS)
        return result_queue(f, record, why);
    struct fact *fact = fact_new(record, f->reporter, f->scratch);
    if (fact->step != FACT_FOLD) /* poison: the fold has put it aside */
        err = OK;
    else if (part == REBUILD_DISPATCHES)
        err = outcome_queue(f, fact, why);
    else if (fact->kind == FACT_CALLBACK)
        err = callback_queue(f, fact, why);
    else if (fact->kind == FACT_PULL_REQUEST)
        err = pr_queue(f, fact, why);
    else if (fact->kind == FACT_PUSH)
        err = push_queue(f, fact, why);
    fact_free(fact);
    return err;
}

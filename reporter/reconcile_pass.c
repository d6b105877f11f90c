/* One pass over one commit and downstream: read the view, compare, call GitHub one check run after
 * the other.
 *
 *   next check ─▶ known here? ─yes─▶ equal, or completed there: skip
 *        ▲             │   └────────▶ update ─────────┐
 *        │             no ─▶ find at GitHub ─▶ update or create
 *        └──────────── remember what was sent ◀───────┘ */
#include "reconcile_pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "reconcile_commit.h"

#define NO_DIGEST "-" /* of nothing that is ever wanted */

static void pass_free(struct pass *p)
{
    for (size_t i = 0; i < p->n; i++)
        wanted_check_clear(&p->wanted[i]);
    free(p->wanted);
    free(p->sent);
    job_list_clear(&p->jobs);
    job_list_clear(&p->more);
    run_answers_clear(&p->answers);
    free(p->commented);
    free(p);
}

void pass_finish(struct pass *p, enum pass_end end, const char *reason)
{
    struct target *target = p->target;
    char text[256];
    target->reconcile->held_until_ms = p->held_ms;
    snprintf(text, sizeof(text), "%s", reason);
    target->pass = NULL;
    pass_free(p);
    pass_ended(target, end, text);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void pass_count(struct pass *p, const char *call, const struct github_answer *answer)
{
    struct metrics *m = role_metrics(p->target->reconcile->role);
    metrics_add(
        m, METRIC_CHECK_RUNS,
        METRIC_LABELS(str_of(call), str_of(answer->limited ? "limited" : err_name(answer->err))),
        1);
    metrics_observe(m, METRIC_CHECK_RUN_SECONDS, METRIC_LABELS(str_of(call)),
                    (double)answer->micros / 1e6);
}

static void wait_until(struct reconcile *r, int64_t mono_ms)
{
    if (mono_ms > r->limited_until_ms)
        r->limited_until_ms = mono_ms;
}

/* What one job's check meets must not keep the aggregate, which may block a merge, from being told;
 * the other jobs' wait for the next pass. */
static void pass_failed(struct pass *p, const char *reason)
{
    if (!p->failed)
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
    p->failed = true;
    p->i = p->n;
    pass_step(p);
}

/* The pass goes on with check run next: the others of the commit are made all the same. */
static void refused(struct pass *p, size_t next, const char *reason)
{
    if (!p->refused && !p->failed)
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
    p->refused = true;
    if (p->wanted[p->i].aggregate)
        pass_forget_due(p);
    p->i = next;
    pass_step(p);
}

static void keep_held(struct pass *p, int64_t until_ms, const char *reason)
{
    if (!p->held_ms && !p->refused && !p->failed)
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
    if (!p->held_ms || until_ms < p->held_ms)
        p->held_ms = until_ms;
}

/* This check run waits for our budget; others may need none of that part of it. */
static void held(struct pass *p, const struct github_answer *answer)
{
    keep_held(p, answer->wait_until_ms, answer->reason);
    p->i++;
    pass_step(p);
}

/* Whether GitHub as a whole has stopped answering, or does again. */
static void look_for_outage(struct pass *p, const struct github_answer *answer)
{
    struct reconcile *r = p->target->reconcile;
    enum outage_change change =
        outage_answered(&r->outage, p->target->hh.hashv, answer, clock_mono_ms());
    if (change == OUTAGE_BEGAN)
        log_warn("check_runs_away", LOG_STR("error", str_of(answer->reason)),
                 LOG_INT("probe_ms", OUTAGE_PROBE_MS));
    if (change == OUTAGE_ENDED)
        log_info("check_runs_back", LOG_INT("status", answer->status));
}

/* True when the answer lets the pass go on. */
static bool answered(struct pass *p, const char *call, const struct github_answer *answer)
{
    struct reconcile *r = p->target->reconcile;
    const char *reason = answer->reason ? answer->reason : "GitHub refused";
    if (answer->ours) {
        held(p, answer);
        return false;
    }
    pass_count(p, call, answer);
    look_for_outage(p, answer);
    role_progress(r->role);
    switch (answer->err) {
    case OK:
        return true;
    case ERR_REFUSE:
        if (!answer->no_token) {
            refused(p, p->i + 1, reason);
            return false;
        }
        log_warn("check_runs_no_token", LOG_STR("error", str_of(reason)),
                 LOG_INT("wait_ms", answer->wait_until_ms - clock_mono_ms()));
        /* fall through */
    case ERR_RETRY:
        wait_until(r, answer->wait_until_ms);
        if (answer->wait_until_ms > 0)
            pass_finish(p, PASS_WAIT, reason);
        else
            pass_failed(p, reason);
        return false;
    default:
        pass_failed(p, reason);
        return false;
    }
}

/* A call that was not even sent. A limit that another pass ran into costs no attempt here either.
 */
static void not_started(struct pass *p, enum err err, const struct why *why)
{
    struct reconcile *r = p->target->reconcile;
    struct github_answer answer =
        github_unsent(r->github, str_of(r->reporter->upstream_repo), err, why);
    if (answer.ours) {
        held(p, &answer);
        return;
    }
    look_for_outage(p, &answer);
    if (answer.limited) {
        wait_until(r, answer.wait_until_ms);
        pass_finish(p, PASS_WAIT, why->text);
    } else if (err == ERR_REFUSE)
        refused(p, p->n, why->text);
    else
        pass_failed(p, why->text);
}

/* Of what an old pass wrote nobody knows whether it was before or after what another did: one more
 * write makes it right. */
static void remember(struct pass *p, int64_t id, bool completed)
{
    struct reconcile *r = p->target->reconcile;
    const struct wanted_check *w = &p->wanted[p->i];
    const struct check_slot slot = pass_slot(w);
    struct check_sent sent = { .id = id, .completed = completed };
    struct why why;
    bool old = target_is_old(p->target);
    snprintf(sent.digest, sizeof(sent.digest), "%s", old ? NO_DIGEST : w->digest);
    /* When this fails the check run is found again at GitHub. */
    if (check_sent_put(r->redis, str_of(p->target->head_sha), &slot, &sent, &r->reporter->times,
                       &why) != OK)
        log_warn("check_run_not_remembered", LOG_STR("error", str_of(why.text)));
    if (old)
        pass_look_again(p);
}

static void check_write(struct pass *p);

/* The check run that was known cannot be written to: deleted (404), or of an App that was ours
 * before (403). Where it is our rights that lack, a new one is refused as well. */
static bool is_gone(const struct pass *p, const struct github_answer *answer)
{
    return p->found_id && p->wanted[p->i].may_start && answer->err == ERR_REFUSE &&
           answer->sent_ms > 0 && (answer->status == 404 || answer->status == 403);
}

static void check_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    const struct wanted_check *w = &p->wanted[p->i];
    FAULT_POINT("reconcile.written");
    if (is_gone(p, answer)) {
        pass_count(p, "update", answer);
        p->found_id = 0;
        check_write(p);
        return;
    }
    bool for_good = answer->err == ERR_REFUSE && answer->status == 422; /* as it will each time */
    bool unknown = answer->err != OK && answer->sent_ms > 0 && target_is_old(p->target);
    if (for_good || unknown)
        remember(p, p->found_id, p->found_completed);
    if (!answered(p, p->found_id ? "update" : "create", answer))
        return;
    log_info("check_run_set", LOG_STR("delivery", str_of(w->delivery)),
             LOG_STR("repo", str_of(p->target->repo)), LOG_STR("name", str_of(w->name)),
             LOG_STR("head_sha", str_of(p->target->head_sha)), LOG_STR("status", str_of(w->status)),
             LOG_STR("conclusion", str_of(w->conclusion)), LOG_INT("id", id));
    remember(p, id, w->completed);
    p->i++;
    pass_step(p);
}

/* What completes, and the first sign of an aggregate, go before the rest when budget is scarce: a
 * job that completes meanwhile needs one call instead of two. */
static bool can_wait(const struct pass *p)
{
    const struct wanted_check *w = &p->wanted[p->i];
    return !w->completed && (p->found_id || !w->aggregate);
}

static void pass_leave(struct pass *p)
{
    pass_finish(p, PASS_WAIT, "the partition moves to another replica, or may have");
}

/* Creates the check run, or updates the one that was found. */
static void check_write(struct pass *p)
{
    if (target_is_old(p->target)) {
        pass_leave(p);
        return;
    }
    struct reconcile *r = p->target->reconcile;
    const struct wanted_check *w = &p->wanted[p->i];
    struct str upstream = str_of(r->reporter->upstream_repo);
    const struct check_run run = {
        .name = str_of(w->name),
        .head_sha = str_of(p->target->head_sha),
        .status = str_of(w->status),
        .conclusion = str_of(w->conclusion),
        .details_url = str_of(w->details_url),
        .external_id = str_of(w->external_id),
        .started_at = str_of(w->started_at),
        .completed_at = str_of(w->completed_at),
        .title = str_of(w->title),
        .summary = str_of(w->summary),
        .low = can_wait(p),
    };
    struct why why;
    enum err err =
        p->found_id
            ? check_run_update(r->github, upstream, p->found_id, &run, check_written, p, &why)
            : check_run_create(r->github, upstream, &run, check_written, p, &why);
    if (err != OK)
        not_started(p, err, &why);
}

/* Ours when the name, the external_id and, where there is one, the marker are. */
static void check_found(void *opaque, const struct check_run_found *run)
{
    struct pass *p = opaque;
    const struct wanted_check *w = &p->wanted[p->i];
    bool same = str_find_str(run->summary, str_of(w->marker)) >= 0;
    bool marked = str_find_str(run->summary, STR_LIT("<!-- crcr:")) >= 0;
    if (marked && !same)
        return;
    if (w->aggregate ? !same : !str_is(run->external_id, w->external_id))
        return;                /* an aggregate goes on under the next delivery's external_id */
    if (run->id < p->found_id) /* the newest, which is the one that GitHub shows */
        return;
    p->found_id = run->id;
    p->found_completed = str_is(run->status, "completed");
}

static void search_done(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    (void)id;
    if (!answered(p, "find", answer))
        return;
    const struct wanted_check *w = &p->wanted[p->i];
    if (p->found_id && p->found_completed && !w->completed) {
        if (!w->aggregate) {
            p->i++;
            pass_step(p);
            return;
        }
        p->found_id = 0; /* never back from completed: the next one of the same name */
    }
    check_write(p);
}

static void check_search(struct pass *p)
{
    struct reconcile *r = p->target->reconcile;
    struct why why;
    enum err err =
        check_run_find(r->github, str_of(r->reporter->upstream_repo), str_of(p->target->head_sha),
                       str_of(p->wanted[p->i].name), check_found, search_done, p, &why);
    if (err != OK)
        not_started(p, err, &why);
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* The check run that is there cannot say what is wanted, and another one may. */
static bool starts_anew(const struct check_sent *sent, const struct wanted_check *w)
{
    return w->aggregate && sent->completed && !w->completed && w->may_start;
}

/* GitHub says what is wanted or refused just that, or has it completed, which it never leaves. */
static bool is_settled(const struct check_sent *sent, const struct wanted_check *w)
{
    return str_is(str_of(sent->digest), w->digest) || (sent->completed && !w->completed);
}

static void comments_done(void *opaque, enum pass_end end, const char *reason)
{
    struct pass *p = opaque;
    bool through = end == PASS_EQUAL || end == PASS_REFUSED;
    if (through && p->held_ms) /* first: the records of what was refused would be done */
        pass_finish(p, PASS_HELD, p->reason);
    else if (end == PASS_EQUAL && p->refused)
        pass_finish(p, PASS_REFUSED, p->reason);
    else
        pass_finish(p, end, reason);
}

/* The check runs are as they should be; the comments that follow from them come last. */
static void pass_end_last(struct pass *p)
{
    size_t n = 0;
    if (p->failed) { /* all of it again, soon */
        pass_finish(p, PASS_FAILED, p->reason);
        return;
    }
    p->commented = mem_alloc(p->n + 1, sizeof(*p->commented));
    for (size_t i = 0; i < p->n; i++) {
        const struct wanted_check *w = &p->wanted[i];
        if (w->job && (w->may_start || p->sent[i].id))
            p->commented[n++] = (struct oncall_job){ w->job, w->details_url };
    }
    comments_start(p->target, p->commented, n, comments_done, p);
}

/* True when it is known that our budget has no room for this one; nothing is asked for it then, not
 * even the search for what might be there. */
static bool is_held(struct pass *p)
{
    struct reconcile *r = p->target->reconcile;
    struct str upstream = str_of(r->reporter->upstream_repo);
    struct github_answer answer;
    bool known = p->found_id;
    if (!github_held(r->github, upstream, known ? BUDGET_WRITE : BUDGET_CHECK_RUN, can_wait(p),
                     &answer) &&
        (known || !github_held(r->github, upstream, BUDGET_READ, false, &answer)))
        return false;
    keep_held(p, answer.wait_until_ms, answer.reason);
    return true;
}

/* The first sign of an aggregate, which may block a merge, does not wait behind jobs for budget. */
static bool aggregate_first(const struct pass *p)
{
    return p->i == 0 && p->has_dispatch && p->may_start && !p->sent[p->n].id;
}

static void put_last_first(struct pass *p)
{
    size_t last = p->n - 1;
    struct wanted_check wanted = p->wanted[last];
    struct check_sent sent = p->sent[last];
    memmove(p->wanted + 1, p->wanted, last * sizeof(wanted));
    memmove(p->sent + 1, p->sent, last * sizeof(sent));
    p->wanted[0] = wanted;
    p->sent[0] = sent;
}

void pass_step(struct pass *p)
{
    for (; !target_is_old(p->target); p->i++) {
        if (!p->summed_up && aggregate_first(p)) {
            if (!pass_sum_up(p))
                return;
            put_last_first(p);
        }
        if (p->i == p->n && !p->summed_up && !pass_sum_up(p))
            return;
        if (p->i == p->n) {
            pass_end_last(p);
            return;
        }
        const struct wanted_check *w = &p->wanted[p->i];
        const struct check_sent *sent = &p->sent[p->i];
        bool anew = sent->id && starts_anew(sent, w);
        p->found_id = anew ? 0 : sent->id;
        p->found_completed = !anew && sent->completed;
        if ((is_settled(sent, w) && !anew) || (!sent->id && !w->may_start))
            continue;
        if (is_held(p))
            continue;
        if (p->found_id)
            check_write(p);
        else
            check_search(p);
        return;
    }
    pass_leave(p);
}

void pass_start(struct target *target)
{
    if (target_is_commit(target)) {
        commit_pass_start(target);
        return;
    }
    struct pass *p = mem_alloc(1, sizeof(*p));
    struct why why;
    p->target = target;
    target->look_ms = 0;
    target->pass = p;
    enum err err = pass_view_read(p, &why);
    if (err == OK)
        pass_step(p);
    else /* what Redis refuses does not heal by waiting */
        pass_finish(p, err == ERR_REFUSE ? PASS_FAILED : PASS_WAIT, why.text);
}

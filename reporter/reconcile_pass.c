/* Carries out one pass. */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/commits.h"
#include "../common/view/commits.h"
#include "../common/view/due.h"
#include "../common/view/rate.h"
#include "reconcile.h"

#define NO_DIGEST       "-" /* of nothing that is ever wanted */
#define LOOK_LATER_MS   1000
#define COMMITS_AN_HOUR 20   /* of one repository's self-reports */
#define SEND_BY_MS      5000 /* a write that is not sent by then: the process was paused */

/* How each action calls GitHub. */
static const struct {
    const char *call;        /* label of its metrics; NULL: no call */
    bool check_run;          /* its metrics are those of check runs */
    enum budget_call budget; /* of check runs */
} kinds[ACTION_KINDS] = {
    [ACTION_CHECK_FIND] = { "find", true, BUDGET_SEARCH },
    [ACTION_CHECK_CREATE] = { "create", true, BUDGET_CHECK_RUN },
    [ACTION_CHECK_UPDATE] = { "update", true, BUDGET_WRITE },
    [ACTION_COMMENT_FIND] = { .call = "comment_find" },
    [ACTION_COMMENT_CREATE] = { .call = "comment_create" },
    [ACTION_COMMENT_EDIT] = { .call = "comment_edit" },
    [ACTION_COMMIT_ASK] = { .call = "commit_get" },
};

static const struct wanted_check *wanted_at(const struct pass *p)
{
    return &p->wanted[action_at(p)->check];
}

/* ---- how a pass goes on and ends ------------------------------------------------------------- */

void pass_stop(struct pass *p, enum pass_end end, const char *reason)
{
    p->over = true;
    p->end = end;
    snprintf(p->reason, sizeof(p->reason), "%s", reason);
}

void pass_redis_failed(struct pass *p, enum err err, const struct why *why)
{
    pass_stop(p, err == ERR_REFUSE ? PASS_FAILED : PASS_WAIT, why->text);
}

void pass_next(struct pass *p)
{
    comment_end(p);
    p->at++;
    p->begun = false;
}

/* Of what is left out for now. */
static void pass_note(struct pass *p, const char *reason)
{
    if (!p->refused && !p->failed && !p->held_ms)
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
}

/* Notes when the target is to be looked at again (wall clock; 0: no more), then the next action. */
static void look_later(struct pass *p, int64_t at_ms)
{
    struct why why;
    enum err err = due_set(p->target->reconcile->redis, str_of(p->target->key), at_ms, &why);
    if (err)
        pass_redis_failed(p, err, &why);
    else
        pass_next(p);
}

/* The same where nothing depends on it. */
static void look_later_try(struct pass *p, int64_t at_ms)
{
    struct why why;
    if (due_set(p->target->reconcile->redis, str_of(p->target->key), at_ms, &why))
        log_warn("due_not_noted", LOG_STR("error", str_of(why.text)));
}

void pass_count(struct pass *p, const char *call, bool check_run,
                const struct github_answer *answer)
{
    struct metrics *m = role_metrics(p->target->reconcile->role);
    struct str outcome =
        str_of(answer->err == ERR_RETRY && answer->because ? "limited" : err_name(answer->err));
    metrics_add(m, check_run ? METRIC_CHECK_RUNS : METRIC_UPSTREAM_CALLS,
                METRIC_LABELS(str_of(call), outcome), 1);
    if (check_run)
        metrics_observe(m, METRIC_CHECK_RUN_SECONDS, METRIC_LABELS(str_of(call)),
                        (double)answer->micros / 1e6);
}

/* Our budget has no room for this action; others may need none of that part of it. A check run
 * holds the target until there is room. What waits behind check runs must not hold them up: it is
 * looked at again at that time. */
static void held(struct pass *p, const struct github_answer *answer)
{
    if (kinds[action_at(p)->kind].check_run) {
        pass_note(p, answer->reason);
        if (!p->held_ms || answer->wait_until_ms < p->held_ms)
            p->held_ms = answer->wait_until_ms;
        pass_next(p);
        return;
    }
    int64_t ms = answer->wait_until_ms - clock_mono_ms();
    int64_t at_ms = clock_wall_ms() + (ms > LOOK_LATER_MS ? ms : LOOK_LATER_MS);
    if (!p->look_ms || at_ms < p->look_ms)
        p->look_ms = at_ms;
    pass_count(p, kinds[action_at(p)->kind].call, false, answer);
    look_later(p, p->look_ms);
}

/* 403 and 404 to a check run say that a right is missing: the DLQ keeps the record until it is
 * there.
 */
bool pass_refused_for_good(const struct pass *p, const struct github_answer *answer)
{
    const enum action_kind kind = action_at(p)->kind;
    bool refused = answer->err == ERR_REFUSE && !answer->because && answer->sent_ms > 0;
    return refused && kind != ACTION_COMMIT_ASK &&
           (!kinds[kind].check_run || answer->status == 422);
}

bool pass_answered(struct pass *p, const struct github_answer *answer)
{
    struct reconcile *r = p->target->reconcile;
    const enum action_kind kind = action_at(p)->kind;
    const char *reason = answer->reason ? answer->reason : "GitHub refused";
    if (answer->because == GATE_BUDGET || answer->because == GATE_IN_FLIGHT) {
        held(p, answer);
        return false;
    }
    pass_count(p, kinds[kind].call, kinds[kind].check_run, answer);
    role_progress(r->role);
    if (!answer->err)
        return true;
    if (answer->err == ERR_REFUSE && !answer->because) { /* the others are made all the same */
        if (pass_refused_for_good(p, answer)) {
            log_warn("refused_for_good", LOG_STR("key", str_of(p->target->key)),
                     LOG_STR("call", str_of(kinds[kind].call)), LOG_STR("error", str_of(reason)));
        } else {
            pass_note(p, reason);
            p->refused = true;
        }
        if (kinds[kind].check_run && wanted_at(p)->aggregate && !target_is_old(p->target)) {
            p->look_ms = p->open_look_ms; /* no more looking for its sake */
            look_later_try(p, p->look_ms);
        }
        pass_next(p);
        return false;
    }
    if (answer->err == ERR_REFUSE)
        log_warn("check_runs_no_token", LOG_STR("error", str_of(reason)),
                 LOG_INT("wait_ms", answer->wait_until_ms - clock_mono_ms()));
    if (answer->because == GATE_BREAKER) { /* targets_start asks again */
        pass_stop(p, PASS_WAIT, reason);
        return false;
    }
    if (answer->err != ERR_UNKNOWN && answer->wait_until_ms > 0) { /* for all alike */
        if (answer->wait_until_ms > r->limited_until_ms)
            r->limited_until_ms = answer->wait_until_ms;
        pass_stop(p, PASS_WAIT, reason);
        return false;
    }
    if (!p->failed)
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
    p->failed = true;
    pass_next(p);
    return false;
}

/* ---- check runs ------------------------------------------------------------------------------ */

/* A stale pass may race with the new owner: one more write makes it right. */
static void remember(struct pass *p, const struct check_sent *is)
{
    struct reconcile *r = p->target->reconcile;
    const struct check_slot slot = wanted_check_slot(wanted_at(p));
    struct check_sent sent = *is;
    struct why why;
    bool old = target_is_old(p->target);
    snprintf(sent.digest, sizeof(sent.digest), "%s", old ? NO_DIGEST : wanted_at(p)->digest);
    /* When this fails the check run is found again at GitHub. */
    if (check_sent_put(r->redis, str_of(p->target->head_sha), &slot, &sent, &r->reporter->times,
                       &why))
        log_warn("check_run_not_remembered", LOG_STR("error", str_of(why.text)));
    if (old)
        look_later_try(p, clock_wall_ms());
}

static void check_found(void *opaque, const struct check_run_found *run)
{
    struct pass *p = opaque;
    if (!wanted_check_is(wanted_at(p), run->external_id, run->summary) || run->id < p->has.sent.id)
        return; /* of several the newest, which is the one that GitHub shows */
    p->has.sent =
        (struct check_sent){ .id = run->id, .completed = str_is(run->status, "completed") };
}

/* The action becomes the one that the plan has for what GitHub has now. */
static void check_plan_again(struct pass *p)
{
    p->has.looked = true;
    action_at(p)->kind = plan_check(wanted_at(p), &p->has);
    if (action_at(p)->kind == ACTION_NONE)
        pass_next(p);
}

static void search_ended(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    (void)id;
    if (pass_refused_for_good(p, answer))
        remember(p, &p->has.sent);
    if (pass_answered(p, answer))
        check_plan_again(p);
    pass_step(p);
}

static void check_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    const struct wanted_check *w = wanted_at(p);
    const bool sent = answer->sent_ms > 0, refused = answer->err == ERR_REFUSE && sent;
    FAULT_POINT("reconcile.written");
    if (action_at(p)->kind == ACTION_CHECK_UPDATE && w->may_start && refused &&
        (answer->status == 404 || answer->status == 403)) {
        /* Deleted (404), or of an App that was ours before (403). Where it is our rights that lack,
         * a new one is refused as well. */
        pass_count(p, "update", true, answer);
        p->has.sent = (struct check_sent){ .id = 0 };
        check_plan_again(p);
    } else {
        bool unknown = answer->err && sent && target_is_old(p->target);
        if (pass_refused_for_good(p, answer) || unknown)
            remember(p, &p->has.sent);
        if (pass_answered(p, answer)) {
            struct check_sent now = { .id = id, .completed = w->completed };
            (void)str_copy(now.state, sizeof(now.state),
                           str_of(w->completed ? w->conclusion : w->status));
            if (w->aggregate)
                (void)str_copy(now.title, sizeof(now.title), str_of(w->title));
            log_info("check_run_set", LOG_STR("delivery", str_of(w->delivery)),
                     LOG_STR("repo", str_of(p->target->repo)), LOG_STR("name", str_of(w->name)),
                     LOG_STR("head_sha", str_of(p->target->head_sha)),
                     LOG_STR("status", str_of(w->status)),
                     LOG_STR("conclusion", str_of(w->conclusion)), LOG_INT("id", id));
            remember(p, &now);
            pass_next(p);
        }
    }
    pass_step(p);
}

/* True when it is known that this one may not go now. Then it is not even searched for. */
static bool check_is_held(struct pass *p, struct github_answer *ret)
{
    struct github *g = p->target->reconcile->github;
    const enum action_kind kind = action_at(p)->kind;
    const struct gate_call call = {
        .repo = upstream_of(p),
        .downstream = str_of(p->target->repo),
        .pr = wanted_at(p)->pr,
        .kind = kind == ACTION_CHECK_FIND && !p->sent_known ? BUDGET_READ : kinds[kind].budget,
        .class = plan_class(wanted_at(p), &p->has.sent, kind),
    };
    return github_holds(g, &call, ret);
}

static enum err check_call(struct pass *p, struct why *why)
{
    struct github *g = p->target->reconcile->github;
    const struct wanted_check *w = wanted_at(p);
    const enum action_kind kind = action_at(p)->kind;
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
        .class = plan_class(w, &p->has.sent, kind),
        .send_by_ms = clock_boot_ms() + SEND_BY_MS,
        .downstream = str_of(p->target->repo),
        .pr = w->pr,
        .creates_next = p->sent_known, /* else there mostly is one */
        .paid = p->has.paid_ms > 0 && clock_mono_ms() - p->has.paid_ms < BUDGET_SEARCH_PAYS_MS,
    };
    p->has.paid_ms = kind == ACTION_CHECK_FIND && p->sent_known ? clock_mono_ms() : 0;
    if (kind == ACTION_CHECK_FIND)
        return check_run_find(g, upstream_of(p), &run, check_found, search_ended, p, why);
    if (kind == ACTION_CHECK_CREATE) {
        p->has.sent = (struct check_sent){ .id = 0 }; /* of one that completed */
        return check_run_create(g, upstream_of(p), &run, check_written, p, why);
    }
    return check_run_update(g, upstream_of(p), p->has.sent.id, &run, check_written, p, why);
}

/* ---- commits of self-reports ----------------------------------------------------------------- */

/* A report names whatever commit it likes, so that each question is paid for by a repository that
 * reports it: the first that has something left. Without one nobody asks until it is reported
 * again. Old records name no repository: the upstream pays. */
static enum err commit_pay(struct pass *p, bool *paid, struct why *why)
{
    static const struct rate_limit limit = { .requests = COMMITS_AN_HOUR,
                                             .bytes = 1,
                                             .period_s = 3600 };
    struct reconcile *r = p->target->reconcile;
    struct str tried = STR_NONE;
    struct dirty *d;
    *paid = false;
    DL_FOREACH(p->target->records, d)
    {
        struct str repo = headers_get(&d->work->record->headers, "repo");
        if (!repo.ptr)
            repo = upstream_of(p);
        if (*paid || str_eq(repo, tried))
            continue;
        struct rate_wait wait;
        enum err err = rate_take(r->redis, RATE_COMMITS, repo, &limit, 0, &wait, why);
        if (err)
            return err;
        *paid = wait.seconds == 0;
        tried = repo;
    }
    return *paid ? commit_seen_put(r->redis, str_of(p->target->head_sha), COMMIT_ASKED,
                                   &r->reporter->times, why)
                 : OK;
}

static void commit_came(void *opaque, const struct github_answer *answer, bool exists)
{
    struct pass *p = opaque;
    struct reconcile *r = p->target->reconcile;
    struct str sha = str_of(p->target->head_sha);
    struct why why;
    if (pass_answered(p, answer)) {
        log_info("commit_asked", LOG_STR("head_sha", sha),
                 LOG_STR("exists", str_of(exists ? "yes" : "no")));
        enum err err = commit_seen_put(r->redis, sha, exists ? COMMIT_EXISTS : COMMIT_ABSENT,
                                       &r->reporter->times, &why);
        if (err)
            pass_redis_failed(p, err, &why);
        else
            pass_next(p);
    }
    pass_step(p);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void pass_end(struct pass *p)
{
    enum pass_end end = p->over      ? p->end
                        : p->failed  ? PASS_FAILED
                        : p->held_ms ? PASS_HELD /* the refused ones are met again then */
                        : p->refused ? PASS_REFUSED
                                     : PASS_EQUAL;
    comment_end(p);
    pass_ended(p->target, end, p->held_ms, p->reason); /* which may free the target */
    for (size_t i = 0; i < p->n; i++)
        wanted_check_clear(&p->wanted[i]);
    free(p->wanted);
    free(p->sent);
    free(p->actions);
    job_list_clear(&p->jobs);
    job_list_clear(&p->more);
    run_answers_clear(&p->answers);
    free(p);
}

/* True when a call of this action is in flight. */
static bool action_start(struct pass *p)
{
    struct github *g = p->target->reconcile->github;
    const enum action_kind kind = action_at(p)->kind;
    struct github_answer answer;
    struct why why;
    enum err err;
    if (!p->begun && kinds[kind].check_run)
        p->has = (struct check_has){ .sent = p->sent[action_at(p)->check] };
    p->begun = true;
    if (kind == ACTION_LOOK_AGAIN) {
        look_later(p, p->look_ms);
        return false;
    }
    if (kind == ACTION_COMMENT) {
        comment_prepare(p);
        return false;
    }
    if (kinds[kind].check_run && check_is_held(p, &answer)) {
        (void)pass_answered(p, &answer);
        return false;
    }
    err = kinds[kind].check_run ? check_call(p, &why)
          : kind == ACTION_COMMIT_ASK
              ? commit_ask(g, upstream_of(p), str_of(p->target->head_sha), commit_came, p, &why)
              : comment_call(p, &why);
    if (!err)
        return true;
    if (!p->over) {
        answer = github_unsent(g, err, &why);
        (void)pass_answered(p, &answer);
    }
    return false;
}

void pass_step(struct pass *p)
{
    while (!p->over && (!p->actions || p->at < p->n_actions)) {
        bool under_way = false;
        if (target_is_old(p->target))
            pass_stop(p, PASS_WAIT, "the partition moves to another replica, or may have");
        else if (!p->actions)
            under_way = !pass_plan(p);
        else if (p->failed && !(kinds[action_at(p)->kind].check_run && wanted_at(p)->aggregate))
            pass_next(p); /* for the next pass; only the aggregate, which may block a merge, goes */
        else
            under_way = action_start(p);
        if (under_way)
            return;
    }
    pass_end(p);
}

void pass_start(struct target *target)
{
    struct reconcile *r = target->reconcile;
    struct pass *p = mem_alloc(1, sizeof(*p));
    struct why why;
    enum err err;
    p->target = target;
    if (!target_is_of_self_reports(target)) {
        err = pass_view_read(p, &why);
    } else { /* of a self-report */
        enum commit_seen seen = COMMIT_UNKNOWN;
        p->actions = mem_alloc(1, sizeof(*p->actions));
        err = commit_seen_get(r->redis, str_of(target->head_sha), &seen, &why);
        bool ask = !err && seen == COMMIT_ASKED;
        if (!err && seen == COMMIT_UNKNOWN)
            err = commit_pay(p, &ask, &why);
        if (!err && ask)
            p->actions[p->n_actions++] = (struct action){ .kind = ACTION_COMMIT_ASK };
    }
    if (err)
        pass_redis_failed(p, err, &why);
    pass_step(p);
}

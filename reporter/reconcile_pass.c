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

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"

static void pass_free(struct pass *p)
{
    for (size_t i = 0; i < p->n; i++)
        wanted_check_clear(&p->wanted[i]);
    free(p->wanted);
    free(p->sent);
    job_list_clear(&p->jobs);
    free(p);
}

static void pass_finish(struct pass *p, enum pass_end end, const char *reason)
{
    struct target *target = p->target;
    char text[256];
    snprintf(text, sizeof(text), "%s", reason);
    target->pass = NULL;
    pass_free(p);
    pass_ended(target, end, text);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void step(struct pass *p);

static void count_call(struct pass *p, const char *call, const struct github_answer *answer)
{
    struct metrics *m = role_metrics(p->target->reconcile->role);
    metrics_add(
        m, METRIC_CHECK_RUNS,
        METRIC_LABELS(str_of(call), str_of(answer->limited ? "limited" : err_name(answer->err))),
        1);
    metrics_observe(m, METRIC_CHECK_RUN_SECONDS, METRIC_LABELS(str_of(call)),
                    (double)answer->micros / 1e6);
}

static void wait_until(struct reconcile *r, int64_t wall_ms)
{
    if (wall_ms > r->limited_until_ms)
        r->limited_until_ms = wall_ms;
}

/* True when the answer lets the pass go on. */
static bool answered(struct pass *p, const char *call, const struct github_answer *answer)
{
    struct reconcile *r = p->target->reconcile;
    const char *reason = answer->reason ? answer->reason : "GitHub refused";
    count_call(p, call, answer);
    role_progress(r->role);
    switch (answer->err) {
    case OK:
        return true;
    case ERR_REFUSE: /* the other check runs of the commit are made all the same */
        if (!p->refused)
            snprintf(p->reason, sizeof(p->reason), "%s", reason);
        p->refused = true;
        p->i++;
        step(p);
        return false;
    case ERR_RETRY:
        wait_until(r, answer->wait_until_ms);
        pass_finish(p, answer->wait_until_ms > 0 ? PASS_WAIT : PASS_FAILED, reason);
        return false;
    default:
        pass_finish(p, PASS_FAILED, reason);
        return false;
    }
}

/* A call that was not even sent. A limit that another pass ran into costs no attempt here either.
 */
static void not_started(struct pass *p, enum err err, const char *reason)
{
    struct reconcile *r = p->target->reconcile;
    struct github_answer blocked;
    bool limited = err == ERR_RETRY &&
                   github_blocked(r->github, str_of(r->reporter->upstream_repo), &blocked) &&
                   blocked.limited;
    if (limited)
        wait_until(r, blocked.wait_until_ms);
    pass_finish(p, limited ? PASS_WAIT : err == ERR_REFUSE ? PASS_REFUSED : PASS_FAILED, reason);
}

static void remember(struct pass *p, int64_t id)
{
    struct reconcile *r = p->target->reconcile;
    const struct wanted_check *w = &p->wanted[p->i];
    const struct check_slot slot = pass_slot(w);
    struct check_sent sent = { .id = id, .completed = w->completed };
    struct why why;
    snprintf(sent.digest, sizeof(sent.digest), "%s", w->digest);
    /* When this fails the check run is found again at GitHub. */
    if (check_sent_put(r->redis, str_of(p->target->head_sha), &slot, &sent, &r->reporter->times,
                       &why) != OK)
        log_warn("check_run_not_remembered", LOG_STR("error", str_of(why.text)));
}

static void check_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    const struct wanted_check *w = &p->wanted[p->i];
    if (!answered(p, p->found_id ? "update" : "create", answer))
        return;
    log_info("check_run_set", LOG_STR("delivery", str_of(w->job->delivery_id)),
             LOG_STR("repo", str_of(p->target->repo)), LOG_STR("name", str_of(w->name)),
             LOG_STR("head_sha", str_of(p->target->head_sha)), LOG_STR("status", str_of(w->status)),
             LOG_STR("conclusion", str_of(w->conclusion)), LOG_INT("id", id));
    remember(p, id);
    p->i++;
    step(p);
}

/* Creates the check run, or updates the one that was found. */
static void check_write(struct pass *p)
{
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
    };
    struct why why;
    enum err err =
        p->found_id
            ? check_run_update(r->github, upstream, p->found_id, &run, check_written, p, &why)
            : check_run_create(r->github, upstream, &run, check_written, p, &why);
    if (err != OK)
        not_started(p, err, why.text);
}

/* Ours when the name, the external_id and, where there is one, the marker are. */
static void check_found(void *opaque, const struct check_run_found *run)
{
    struct pass *p = opaque;
    const struct wanted_check *w = &p->wanted[p->i];
    if (!str_is(run->external_id, w->external_id))
        return;
    bool marked = str_find_str(run->summary, STR_LIT("<!-- crcr:")) >= 0;
    if (marked && str_find_str(run->summary, str_of(w->marker)) < 0)
        return;
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
    if (p->found_id && p->found_completed && !p->wanted[p->i].completed) {
        p->i++;
        step(p);
        return;
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
        not_started(p, err, why.text);
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* GitHub says what is wanted, or has it completed, which it never leaves. */
static bool is_settled(const struct check_sent *sent, const struct wanted_check *w)
{
    return str_is(str_of(sent->digest), w->digest) || (sent->completed && !w->completed);
}

/* Goes on with the next check run that differs; ends the pass after the last one. */
static void step(struct pass *p)
{
    const struct reconcile *r = p->target->reconcile;
    for (; p->i < p->n && !r->revoking; p->i++) {
        const struct wanted_check *w = &p->wanted[p->i];
        const struct check_sent *sent = &p->sent[p->i];
        p->found_id = sent->id;
        p->found_completed = sent->completed;
        if (sent->id ? is_settled(sent, w) : !w->may_start)
            continue;
        if (sent->id)
            check_write(p);
        else
            check_search(p);
        return;
    }
    if (p->i < p->n)
        pass_finish(p, PASS_WAIT, "the partition moves to another replica");
    else
        pass_finish(p, p->refused ? PASS_REFUSED : PASS_EQUAL, p->reason);
}

void pass_start(struct target *target)
{
    struct pass *p = mem_alloc(1, sizeof(*p));
    struct why why;
    p->target = target;
    target->pass = p;
    enum err err = pass_view_read(p, &why);
    if (err == OK)
        step(p);
    else /* what Redis refuses does not heal by waiting */
        pass_finish(p, err == ERR_REFUSE ? PASS_FAILED : PASS_WAIT, why.text);
}

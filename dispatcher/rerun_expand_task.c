/* A task of kind expand, from its claim until all its tasks and outcomes are stored
 * (rerun_expand.h). Idempotent: after a crash it is done again, and each of its tasks is claimed on
 * its own.
 *
 *   check suite ─▶ its pages ────────────────────────────┐
 *   aggregate ───▶ the view ─┬─ runs ─────────────────────┴─▶ tasks, outcomes ─▶ stored ─▶ answered
 *                            └─ none ─▶ the pull request ─▶ a dispatch ──▲                     */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/check_runs.h"
#include "../common/github/payload_fit.h"
#include "../common/github/pulls.h"
#include "../common/view/epoch.h"
#include "../common/view/jobs.h"
#include "metrics.h"
#include "rerun_expand.h"
#include "sender.h"

#define WAIT_MS          9000 /* short enough to be held in hand (DISPATCH_IN_HAND_MS) */
#define TRIMMED_MAX      (16u << 10)
#define PULL_EVENT_MAX   (4u << 20)
#define FRESH_EVENT_KEY  512
#define LATEST_PARTITION INT32_MAX

struct expand_task {
    struct task_in_hand *t;
    struct check_asked *checks; /* found in the suite; owns its text */
    size_t n_checks;
    struct buf payload, trimmed; /* of a fresh dispatch */
    size_t tasks, skipped;       /* that it became */
    int status;                  /* of GitHub's last answer; 0: it was not asked */
    int64_t sent_ms;             /* wall clock: when it was asked last */
};

/* ---- the end ---- */

void expand_task_free(struct expand_task *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->n_checks; i++) {
        free((char *)e->checks[i].name.ptr);
        free((char *)e->checks[i].external_id.ptr);
    }
    free(e->checks);
    buf_clear(&e->payload);
    buf_clear(&e->trimmed);
    free(e);
}

/* owner/repo@sha */
static struct str upstream_of(const struct task *task)
{
    struct str rest = task->event_key, repo = STR_NONE;
    str_split(&rest, '@', &repo);
    return repo;
}

static struct task_in_hand *leave(struct expand_task *e)
{
    struct task_in_hand *t = e->t;
    t->expand = NULL;
    expand_task_free(e);
    return t;
}

/* These are GETs: a lost answer is RETRY, never UNKNOWN. */
static void fail(struct expand_task *e, const struct github_answer *answer)
{
    struct github_answer seen = *answer;
    if (seen.err == ERR_UNKNOWN)
        seen.err = ERR_RETRY;
    task_answered(leave(e), &seen);
}

/* A call that could not be started; a limit spends no attempt. */
static void fail_unsent(struct expand_task *e, enum err err, const struct why *why)
{
    const struct github_answer unsent = github_unsent(e->t->s->clients.github, err, why);
    fail(e, &unsent);
}

/* Waits without spending an attempt: what is missing will be there again. */
static void wait_a_while(struct expand_task *e, const char *reason)
{
    const struct dispatch_decision wait = { .next = DISPATCH_WAIT,
                                            .outcome = OUTCOME_WAITING,
                                            .until_ms = clock_mono_ms() + WAIT_MS,
                                            .attempt = e->t->task.attempt,
                                            .reason = reason };
    task_decided(leave(e), &wait);
}

/* What cannot be expanded, ever. */
static void expand_refuse(struct expand_task *e, const char *reason)
{
    const struct dispatch_decision dead = { .next = DISPATCH_DEAD,
                                            .outcome = OUTCOME_FAILED,
                                            .attempt = e->t->task.attempt,
                                            .reason = reason,
                                            .dlq_class = "refused" };
    task_decided(leave(e), &dead);
}

/* nothing: why nothing came of it, else NULL. */
static void succeed(struct expand_task *e, const char *nothing)
{
    struct task_in_hand *t = e->t;
    const struct dispatch_decision done = { .next = DISPATCH_END,
                                            .outcome =
                                                nothing ? OUTCOME_SKIPPED : OUTCOME_DISPATCHED,
                                            .attempt = t->task.attempt,
                                            .reason = nothing };
    log_info("expanded", LOG_STR("delivery", t->task.event.delivery), LOG_STR("repo", t->task.repo),
             LOG_STR("of", t->task.run_id), LOG_INT("tasks", (int64_t)e->tasks),
             LOG_INT("skipped", (int64_t)e->skipped), LOG_STR("nothing", str_of(nothing)));
    int status = e->status;
    int64_t sent_ms = e->sent_ms;
    task_decided(leave(e), &done);
    t->outcome.http_status = status;
    if (sent_ms)
        t->outcome.at_ms = sent_ms;
}

static void stored(void *opaque)
{
    succeed(opaque, NULL);
}

/* ---- what it becomes ---- */

static void put_routes(struct expand_task *e, const struct routes *routes)
{
    struct work *work = e->t->work;
    for (size_t i = 0; i < routes->n; i++) {
        const struct route *to = &routes->at[i];
        const struct task task = route_task(to, &e->t->task);
        struct outcome outcome;
        if (!to->skipped) {
            post_tasks(work, &task, task.repo, 1,
                       route_takes_payload(to->kind) ? work->record->value : STR_LIT(""));
            e->tasks++;
            continue;
        }
        outcome_now(&outcome, &task, OUTCOME_SKIPPED, to->skipped);
        post_outcome(work, &outcome);
        e->skipped++;
    }
}

/* ---- a check suite ---- */

static void check_found(void *opaque, const struct check_run_found *found)
{
    struct expand_task *e = opaque;
    if ((e->n_checks & (e->n_checks - 1)) == 0) /* full at each power of two */
        e->checks = mem_resize(e->checks, e->n_checks ? 2 * e->n_checks : 1, sizeof(*e->checks));
    e->checks[e->n_checks++] = (struct check_asked){
        .app_id = found->app_id,
        .name = str_of(str_dup(found->name)),
        .external_id = str_of(str_dup(found->external_id)),
    };
}

static void suite_listed(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct expand_task *e = opaque;
    const struct dispatcher *d = e->t->s->d;
    struct routes routes;
    (void)id;
    if (answer->err) {
        fail(e, answer);
        return;
    }
    e->status = answer->status;
    e->sent_ms = answer->sent_ms;
    const struct allowlist_version *version = allowlist_feed_get(d->feed);
    const struct route_input in = { .event = &e->t->task.event,
                                    .list = version->list,
                                    .now_ms = clock_wall_ms(),
                                    .max_age_ms = d->max_age_ms,
                                    .app_id = d->app_number };
    if (!in.list) {
        wait_a_while(e, "there is no allowlist yet");
    } else {
        expand_suite(&in, e->checks, e->n_checks, &routes);
        for (size_t i = 0; i < routes.n; i++)
            if (!routes.at[i].skipped && rerun_is_of_other_ci(e->t, &routes.at[i]))
                routes.at[i].skipped = ROUTE_OTHER_CI;
        expand_drop_aggregates(&routes);
        put_routes(e, &routes);
        if (routes.n)
            work_then(e->t->work, stored, e);
        else
            succeed(e, routes.nothing);
        routes_clear(&routes);
    }
    allowlist_feed_release(d->feed, version);
}

/* ---- an aggregate check: a fresh dispatch ---- */

/* Into the lane of the pull request, in order with its events: after those up to the moment at
 * which it was read, before all later ones. */
static void put_dispatch(struct expand_task *e, const struct pull *pull)
{
    const struct task *asked = &e->t->task;
    struct buf CLEANUP(buf_clear) key;
    struct task task = {
        .event = { .kind = EVENT_PULL_REQUEST,
                   .action = STR_LIT("reopened"),
                   .delivery = asked->event.delivery,
                   .head_sha = asked->event.head_sha,
                   .source = asked->event.source,
                   .pr = pull->number,
                   .received_ms = asked->event.received_ms,
                   .again = asked->event.again },
        .repo = asked->repo,
        .level = asked->level,
        .kind = TASK_DISPATCH,
        .attempt = 1,
        .seq = { pull->updated_ms, LATEST_PARTITION, asked->seq.offset },
        .payload_trimmed = e->trimmed.len ? buf_str(&e->trimmed) : STR_NONE,
    };
    buf_init(&key, FRESH_EVENT_KEY);
    buf_printf(&key, "%.*s#%lld", STR_ARG(upstream_of(asked)), (long long)pull->number);
    task.event_key = buf_str(&key);
    post_tasks(e->t->work, &task, task.repo, 1, buf_str(&e->payload));
    e->tasks++;
    work_then(e->t->work, stored, e);
}

static void pull_came(void *opaque, const struct github_answer *answer)
{
    struct expand_task *e = opaque;
    struct buf CLEANUP(buf_clear) event;
    struct pull pull;
    struct why why;
    char reason[160];
    buf_init(&event, PULL_EVENT_MAX + WEBHOOK_MAX_BYTES);
    if (answer->err) {
        fail(e, answer);
        return;
    }
    e->status = answer->status;
    e->sent_ms = answer->sent_ms;
    enum err err = pull_read(answer->body, &pull, &why);
    if (!err && (!pull.open || !str_eq(str_of(pull.head_sha), e->t->task.event.head_sha))) {
        snprintf(reason, sizeof(reason),
                 pull.open ? "the pull request has moved on to %s"
                           : "the pull request is closed at %s",
                 pull.head_sha);
        succeed(e, reason);
        return;
    }
    if (!err)
        err = pull_event(answer->body, e->t->work->record->value, &event, &why);
    if (!err)
        err = payload_fit(buf_str(&event), PAYLOAD_MAX_BYTES, &e->payload, &e->trimmed, &why);
    if (err)
        expand_refuse(e, why.text);
    else
        put_dispatch(e, &pull);
}

/* ---- an aggregate check: the view ---- */

static void aggregate_start(struct expand_task *e)
{
    struct sender *s = e->t->s;
    const struct task *task = &e->t->task;
    struct expand_aggregate of = { .repo = task->repo,
                                   .level = task->level,
                                   .delivery = task->event.delivery };
    struct job_list jobs = { 0 };
    struct routes routes;
    struct str delivery;
    int64_t before = 0, after = 0;
    struct why why = { "" };
    if (!rerun_aggregate_id(task->run_id, &delivery, &of.pr)) {
        expand_refuse(e, "the aggregate check names no delivery");
        return;
    }
    /* While the view is unavailable or being rebuilt, a missing run proves nothing. */
    enum err err = view_epoch_get(s->clients.redis, &before, &why);
    if (!err)
        err = jobs_of_head(s->clients.redis, task->event.head_sha, task->repo, &jobs, &why);
    if (!err)
        err = view_epoch_get(s->clients.redis, &after, &why);
    if (!err && (!before || before != after))
        err = why_set(&why, ERR_RETRY, "the view is being rebuilt");
    if (err) {
        job_list_clear(&jobs);
        wait_a_while(e, why.text);
        return;
    }
    expand_aggregate(&of, jobs.at, jobs.n, &routes);
    put_routes(e, &routes);
    if (routes.n)
        work_then(e->t->work, stored, e);
    else
        err = pull_get(s->clients.github, upstream_of(task), of.pr, pull_came, e, &why);
    routes_clear(&routes);
    job_list_clear(&jobs);
    if (err)
        fail_unsent(e, err, &why);
}

/* ---- the start ---- */

void expand_task_start(struct task_in_hand *t)
{
    struct expand_task *e = mem_alloc(1, sizeof(*e));
    e->t = t;
    buf_init(&e->payload, PAYLOAD_MAX_BYTES);
    buf_init(&e->trimmed, TRIMMED_MAX);
    t->expand = e;
    if (!rerun_is_suite(&t->task)) {
        aggregate_start(e);
        return;
    }
    struct why why;
    uint64_t suite_id = 0;
    str_to_u64(t->task.run_id, &suite_id); /* that it is a number made it a suite's */
    enum err err = check_run_list(t->s->clients.github, t->task.repo, suite_id, check_found,
                                  suite_listed, e, &why);
    if (err)
        fail_unsent(e, err, &why);
}

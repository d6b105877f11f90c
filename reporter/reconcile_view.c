/* What a pass goes by: jobs, labels, the tier in force, what was sent before, what GitHub says of
 * the runs; and the plan that follows from it. */
#include <stdio.h>
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/actions.h"
#include "../common/view/epoch.h"
#include "../common/view/pull_requests.h"
#include "aggregate.h"
#include "reconcile.h"
#include "sweep_callback.h"

#define VIEW_NAME_MAX      512
#define AGGREGATE_JOBS_MAX 2000 /* looked at for an aggregate */

/* The pull requests that the jobs and the dispatch belong to. */
struct commit_prs {
    struct commit_pr *at;
    size_t n;
};

static void commit_prs_clear(struct commit_prs *prs)
{
    for (size_t i = 0; i < prs->n; i++)
        free((char *)(uintptr_t)prs->at[i].labels);
    free(prs->at);
}

static enum err commit_prs_read(struct redis *r, const struct pass *p, struct commit_prs *ret,
                                struct why *why)
{
    int64_t heard_ms = p->has_dispatch ? p->dispatch.received_ms : 0;
    ret->at = mem_alloc(p->jobs.n + 1, sizeof(*ret->at));
    for (size_t i = 0; i <= p->jobs.n; i++) {
        int64_t pr = i < p->jobs.n ? p->jobs.at[i].pr_number : p->dispatch.pr;
        bool known = pr <= 0;
        for (size_t k = 0; k < ret->n && !known; k++)
            known = ret->at[k].pr == pr;
        if (known)
            continue;
        struct pr_now now;
        enum err err = pr_now_get(r, pr, &now, why);
        if (err)
            return err;
        bool past = pr_now_is_past(&now, str_of(p->target->head_sha), heard_ms);
        ret->at[ret->n++] = (struct commit_pr){ pr, now.labels, past };
    }
    return OK;
}

static enum err known_read(struct pass *p, struct why *why)
{
    struct reconcile *r = p->target->reconcile;
    enum err err = known_failures_mark(&r->known, r->redis, p->jobs.at, p->jobs.n, why);
    return err ? err : known_failures_mark(&r->known, r->redis, p->more.at, p->more.n, why);
}

static enum err wanted_work_out(struct pass *p, const struct commit_prs *prs,
                                const struct demotions *demoting, struct why *why)
{
    struct allowlist_feed *feed = p->target->reconcile->reporter->feed;
    const struct allowlist_version *version = allowlist_feed_get(feed);
    const struct allowlist_entry *entry = allowlist_find(version->list, str_of(p->target->repo));
    const struct commit_view view = {
        .level = entry ? entry->level : 0,
        .device = entry ? entry->device : STR_NONE,
        .demoted = !!demotion_in_force(version, demoting, str_of(p->target->repo)),
        .prs = prs->at,
        .n_prs = prs->n,
        .jobs = p->jobs.at,
        .n_jobs = p->jobs.n,
    };
    enum err err = view.level >= 3 ? known_read(p, why) : OK; /* below nobody would read it */
    p->wanted = mem_alloc(p->jobs.n + 1, sizeof(*p->wanted)); /* and the aggregate's */
    p->n = which_checks_list(&view, p->wanted);
    p->required = p->has_dispatch && view.level == 4;
    p->past = p->has_dispatch && commit_is_past(&view, p->dispatch.pr);
    allowlist_feed_release(feed, version);
    return err;
}

static enum err sent_read(struct pass *p, struct why *why)
{
    struct buf CLEANUP(buf_clear) name = BUF_INIT(VIEW_NAME_MAX);
    struct check_slot *slots = mem_alloc(p->n + 1, sizeof(*slots));
    for (size_t i = 0; i < p->n; i++)
        slots[i] = wanted_check_slot(&p->wanted[i]);
    if (p->has_dispatch)
        slots[p->n] = aggregate_slot(&name, p->dispatch.repo);
    p->sent = mem_alloc(p->n + 1, sizeof(*p->sent));
    enum err err = checks_sent_get(p->target->reconcile->redis, str_of(p->target->head_sha), slots,
                                   p->n + p->has_dispatch, p->sent, why);
    free(slots);
    return err;
}

static enum err view_read(struct pass *p, struct why *why)
{
    struct redis *redis = p->target->reconcile->redis;
    struct commit_prs CLEANUP(commit_prs_clear) prs = { NULL, 0 };
    struct str sha = str_of(p->target->head_sha), repo = str_of(p->target->repo);
    enum err err = jobs_of_head(redis, sha, repo, &p->jobs, why);
    if (!err)
        err = dispatch_of_head(redis, sha, repo, &p->has_dispatch, &p->dispatch, why);
    if (!err)
        err = run_answers_get(redis, sha, repo, &p->answers, why);
    /* More jobs than the set of a commit holds: those of the dispatch are read by its own index. */
    if (!err && p->has_dispatch && p->jobs.n >= HEAD_JOBS_MAX)
        err = jobs_of_dispatch(redis, str_of(p->dispatch.delivery), str_of(p->dispatch.repo),
                               AGGREGATE_JOBS_MAX, &p->more, why);
    struct demotions *demoting = NULL;
    if (!err)
        err = commit_prs_read(redis, p, &prs, why);
    if (!err)
        err = prs_demoting_get(redis, &demoting, why);
    if (err)
        return err;
    err = wanted_work_out(p, &prs, demoting, why);
    demotions_free(demoting);
    if (!err)
        err = sent_read(p, why);
    if (!err)
        p->unchecked = which_checks_limit(p->wanted, p->sent, p->n,
                                          (size_t)p->target->reconcile->reporter->job_checks_max);
    return err;
}

/* What a view lacks that was emptied meanwhile would pass for what is not wanted: the same epoch
 * before and after says that it was consistent all the while. */
enum err pass_view_read(struct pass *p, struct why *why)
{
    struct reconcile *r = p->target->reconcile;
    int64_t before = 0, after = 0;
    enum err err = view_epoch_get(r->redis, &before, why);
    if (!err && before != 0)
        err = view_read(p, why);
    if (!err && before != 0)
        err = view_epoch_get(r->redis, &after, why);
    p->sent_known = p->has_dispatch && p->dispatch.received_ms >= before / 1000;
    r->view_lost = !err && (before == 0 || after != before);
    return r->view_lost ? why_set(why, ERR_RETRY, "the view is being rebuilt") : err;
}

/* ---- questions about runs, then the plan ----------------------------------------------------- */

static struct aggregate_view aggregate_view_of(const struct pass *p)
{
    const struct reporter *r = p->target->reconcile->reporter;
    const struct job_list *jobs = p->more.at ? &p->more : &p->jobs;
    return (struct aggregate_view){
        .dispatch = &p->dispatch,
        .required = p->required,
        .jobs = jobs->at,
        .n_jobs = jobs->n,
        .more_jobs = p->more.n >= AGGREGATE_JOBS_MAX,
        .unchecked = p->unchecked,
        .checks_max = r->job_checks_max,
        .answers = &p->answers,
        .now_ms = clock_wall_ms(),
        .silent_ms = r->times.overdue_ms,
        .quiet_ms = r->quiet_ms,
        .public_url = r->public_url,
        .forgive_known = r->known_neutral,
    };
}

/* A limit, or no answer, spends one of the times to ask; the next one comes within a minute. */
static void run_answer_keep(struct pass *p, const struct github_answer *answer,
                            const struct actions_run *run)
{
    struct reconcile *r = p->target->reconcile;
    struct run_answer kept = { .said = RUN_SAID_NOTHING, .asked_ms = clock_wall_ms() };
    struct why why;
    snprintf(kept.run_id, sizeof(kept.run_id), "%s", p->asking);
    if (run) {
        kept.said = str_is(run->status, "completed") ? RUN_SAID_COMPLETED : RUN_SAID_GOING;
        kept.attempt = run->attempt;
        str_copy(kept.conclusion, sizeof(kept.conclusion), run->conclusion);
    } else if (answer->err == ERR_REFUSE) {
        kept.said = RUN_SAID_NO;
        snprintf(kept.error, sizeof(kept.error), "%s", answer->reason);
    }
    run_answers_set(&p->answers, &kept);
    if (run_answer_put(r->redis, str_of(p->target->head_sha), str_of(p->target->repo), &kept,
                       &r->reporter->times, &why))
        log_warn("run_answer_not_remembered", LOG_STR("error", str_of(why.text)));
}

static void run_came(void *opaque, const struct github_answer *answer,
                     const struct actions_run *run)
{
    struct pass *p = opaque;
    pass_count(p, "ask_run", true, answer);
    role_progress(p->target->reconcile->role);
    if (!target_is_old(p->target)) { /* else another may have asked later than we did */
        run_answer_keep(p, answer, run);
        log_info("run_asked", LOG_STR("repo", str_of(p->target->repo)),
                 LOG_STR("run_id", str_of(p->asking)), LOG_INT("status", answer->status),
                 LOG_STR("run", run ? run->status : STR_NONE));
    }
    pass_step(p);
}

/* Starts the question about a run. False: it cannot be asked, which is its answer. */
static bool run_ask(struct pass *p, const char *run_id)
{
    struct why why;
    snprintf(p->asking, sizeof(p->asking), "%s", run_id);
    enum err err = actions_run_get(p->target->reconcile->github, str_of(p->target->repo),
                                   str_of(p->asking), run_came, p, &why);
    if (!err)
        return true;
    const struct github_answer unsent = { .err = err, .reason = why.text };
    run_answer_keep(p, &unsent, NULL);
    return false;
}

/* Of the runs that the aggregate depends on; false: nothing is to be asked. */
static bool aggregate_ask(struct pass *p, const struct aggregate *a)
{
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].ask && run_ask(p, a->runs[i].run_id))
            return true;
    return false;
}

/* The same of those with open jobs. */
static bool open_ask(struct pass *p)
{
    const char *run_id;
    while ((run_id = ended_runs_ask(&p->open, &p->answers, clock_wall_ms(), &p->open_look_ms)))
        if (run_ask(p, run_id))
            return true;
    return false;
}

/* ---- open jobs of runs that have ended --------------------------------------------------------
 */

static void job_end(struct pass *p, const struct result_record *job, const char *conclusion)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(DELIVERY_MAX + 1 + REPO_MAX);
    struct buf CLEANUP(buf_clear) body = BUF_INIT(SWEEP_BODY_MAX);
    struct headers headers;
    sweep_callback_key(job, &key);
    sweep_callback_headers(job, run_answer_find(&p->answers, job->run_id)->asked_ms, &headers);
    sweep_callback_body(job, conclusion, &body);
    const struct post post = {
        .topic = TOPIC_CALLBACKS, .key = buf_str(&key), .value = buf_str(&body), .headers = &headers
    };
    work_put(p->target->records->work, &post);
    log_info("ended_with_its_run", LOG_STR("delivery", str_of(job->delivery_id)),
             LOG_STR("repo", str_of(job->repo)), LOG_STR("job", str_of(job->job_name)),
             LOG_STR("run_id", str_of(job->run_id)), LOG_STR("conclusion", str_of(conclusion)));
}

/* The fold takes them from the topic, and marks the commit again. */
static void open_jobs_end(struct pass *p)
{
    int64_t now_ms = clock_wall_ms();
    for (size_t i = 0; i < p->jobs.n; i++) {
        const struct result_record *job = &p->jobs.at[i];
        const char *conclusion = ended_runs_end(&p->open, &p->answers, job, now_ms);
        if (conclusion && sweep_callback_possible(job))
            job_end(p, job, conclusion);
    }
}

bool pass_plan(struct pass *p)
{
    const struct reporter *r = p->target->reconcile->reporter;
    struct aggregate CLEANUP(aggregate_clear) a = { .jobs = NULL };
    ended_runs_find(p->jobs.at, p->jobs.n, &p->open);
    if (open_ask(p))
        return false;
    open_jobs_end(p);
    p->look_ms = p->open_look_ms;
    if (p->has_dispatch && ((p->required && !p->past) || p->sent[p->n].id)) {
        struct aggregate_view view = aggregate_view_of(p);
        aggregate_work_out(&view, &a);
        if (aggregate_ask(p, &a))
            return false;
        aggregate_clear(&a);
        view = aggregate_view_of(p); /* with what could not be asked */
        aggregate_work_out(&view, &a);
        if (a.look_ms > 0 && (p->look_ms == 0 || a.look_ms < p->look_ms))
            p->look_ms = a.look_ms;
        wanted_check_of_aggregate(&a, &view, p->past, &p->wanted[p->n++]);
    }
    const struct plan_view plan = {
        .wanted = p->wanted,
        .sent = p->sent,
        .n = p->n,
        .comments = r->oncall_comments,
        .look = p->look_ms > 0,
    };
    p->actions = mem_alloc(plan_most_actions(p->n), sizeof(*p->actions));
    p->n_actions = plan_actions(&plan, p->actions);
    return true;
}

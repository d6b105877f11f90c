/* Which tasks start now: what is due is taken from its lane, claimed in one round trip, decided and
 * called. */
#include <inttypes.h>
#include <stdio.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/view/jobs.h"
#include "metrics.h"
#include "sender.h"
#include "superseded.h"

static struct dispatch_facts facts_of(struct task_in_hand *t, unsigned known)
{
    return (struct dispatch_facts){ .known = known,
                                    .claim = CLAIM_NONE,
                                    .is_expand = t->task.kind == TASK_EXPAND,
                                    .attempt = t->task.attempt,
                                    .now_ms = clock_mono_ms(),
                                    .jitter = sender_jitter(t->s) };
}

bool rerun_is_of_other_ci(const struct task_in_hand *t, const struct route *rerun)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct why ignored;
    bool other = false, actions = false;
    if ((rerun->kind != TASK_RERUN_FAILED && rerun->kind != TASK_RERUN_ALL) ||
        jobs_of_head(t->s->clients.redis, t->task.event.head_sha, rerun->repo, &jobs, &ignored))
        return false;
    for (size_t i = 0; i < jobs.n; i++)
        if (str_eq(str_of(jobs.at[i].run_id), rerun->run_id)) {
            bool is_other = result_record_is_of_other_ci(&jobs.at[i]);
            other |= is_other;
            actions |= !is_other;
        }
    return other && !actions; /* both may have a run of that number */
}

/* What is known before a claim is asked for: its age, the allowlist in force and the view say
 * whether it is wanted. */
static struct dispatch_facts facts_before(struct task_in_hand *t, unsigned known,
                                          const struct allowlist_version *version)
{
    const struct task *task = &t->task;
    const struct route rerun = { .repo = task->repo, .kind = task->kind, .run_id = task->run_id };
    struct dispatch_facts facts = facts_of(t, known);
    facts.unwanted = dispatch_unwanted(task, version->list, clock_wall_ms(), t->s->d->max_age_ms);
    if (!facts.unwanted && rerun_is_of_other_ci(t, &rerun))
        facts.unwanted = ROUTE_OTHER_CI;
    if (facts.unwanted)
        facts.known |= FACT_UNWANTED;
    return facts;
}

static struct task_in_hand *taken(struct lane_item *item, bool reserved)
{
    struct task_in_hand *t = (struct task_in_hand *)item;
    t->state = TASK_CLAIMING;
    t->owner[0] = 0;
    t->signed_ms = 0;
    t->reserved = reserved;
    t->paid = false;
    return t;
}

/* A crash without Redis repeats all that was called past the oldest open record, so less is read
 * past it. */
static void note_redis(struct sender *s, bool answers, const char *reason)
{
    if (answers == !s->redis_unavailable)
        return;
    if (!answers)
        log_warn("claims_unavailable", LOG_STR("tier", s->tier), LOG_STR("error", str_of(reason)));
    worker_limit_span(s->worker, answers ? 0 : SENDER_IN_HAND_RECORDS);
    s->redis_unavailable = !answers;
}

/* One that starts. */
struct start {
    struct task_in_hand *t;
    struct dispatch_facts facts;
    struct gate_bill bill;
    bool asked; /* Redis, for its claim */
};

/* May its call go? What it costs goes into the claim. False: it may not, and waits without asking
 * for a claim. Other kinds ask the gate as they are sent. */
static bool make_bill(struct start *start)
{
    struct task_in_hand *t = start->t;
    struct github_answer refused;
    if (t->task.kind != TASK_DISPATCH)
        return true;
    if (github_bill(t->s->clients.github, t->task.repo, &start->bill, &refused))
        return true;
    task_answered(t, &refused);
    return false;
}

/* Reads the claim's answer. If the budget refused, no claim was taken and the task waits. */
static void collect_claim(struct start *start, struct why *why)
{
    struct task_in_hand *t = start->t;
    struct dispatch_facts *facts = &start->facts;
    struct github_answer refused;
    struct claim_answer claim = { .verdict = CLAIM_NONE };
    bool answered = start->asked && !claim_collect(t->s->clients.redis, &claim, why);
    note_redis(t->s, answered, why->text);
    metrics_add(role_metrics(t->s->role), M_CLAIMS,
                METRIC_LABELS(t->s->tier, str_of(claim_verdict_name(claim.verdict))), 1);
    *facts = facts_of(t, FACT_CLAIM_ASKED);
    facts->claim = claim.verdict;
    facts->busy_until_ms = clock_mono_ms() + claim.wait_ms + 1;
    t->called = claim.call;
    if (claim.verdict > CLAIM_EXPIRED && claim.verdict != CLAIM_NONE)
        t->owner[0] = 0;
    if (!start->bill.shared.account.ptr ||
        (claim.verdict > CLAIM_EXPIRED && claim.verdict != CLAIM_UNPAID))
        return;
    t->paid = github_paid(t->s->clients.github, &start->bill, &claim.budget, &refused);
    if (!t->paid)
        task_answered(t, &refused);
}

static void decide_and_call(struct start *start)
{
    struct task_in_hand *t = start->t;
    struct sender *s = t->s;
    struct dispatch_facts *facts = &start->facts;
    facts->now_ms = clock_mono_ms();
    if (clock_boot_ms() > s->claiming_ms + CLAIM_HALF_MS)
        facts->known |= FACT_CLAIM_OLD;
    if (!worker_may_act(s->worker, s->claiming_ms))
        facts->known |= FACT_PARTITION_UNSURE;
    const struct dispatch_decision decision = dispatch_decide(facts);
    task_follow(t, &decision);
}

/* One round trip for all, for their claims and what their calls cost: they are queued first, then
 * read in the same order; then GitHub is called. */
static void claim_and_call(struct sender *s, struct start *batch, size_t n)
{
    struct why why = { "" };
    enum err err = OK;
    s->claiming_ms = clock_boot_ms();
    for (size_t i = 0; i < n; i++) {
        struct task_in_hand *t = batch[i].t;
        const struct budget_bill *bill = &batch[i].bill.shared;
        if (!make_bill(&batch[i]))
            continue;
        /* Also while Redis is unavailable: the outcome is stored there if it is back by then. */
        snprintf(t->owner, sizeof(t->owner), "%s.%s.%" PRIu64, daemon_owner(role_daemon(s->role)),
                 s->tier.ptr, ++s->claims);
        if (!err)
            err = claim_queue(s->clients.redis, &t->task, t->owner, clock_wall_ms(),
                              superseded_by_waiting(t), bill->account.ptr ? bill : NULL, &why);
        batch[i].asked = !err;
    }
    for (size_t i = 0; i < n; i++)
        if (batch[i].t->state == TASK_CLAIMING)
            collect_claim(&batch[i], &why);
    for (size_t i = 0; i < n; i++)
        if (batch[i].t->state == TASK_CLAIMING)
            decide_and_call(&batch[i]);
    for (size_t i = 0; i < n; i++)
        task_unreserve(batch[i].t);
}

void tasks_start(struct sender *s)
{
    struct start batch[SENDER_IN_FLIGHT_MAX];
    struct lane_item *item;
    size_t n = 0;
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    while (s->in_flight + n < SENDER_IN_FLIGHT_MAX &&
           (item = lanes_take(s->lanes, clock_mono_ms()))) {
        struct task_in_hand *t = taken(item, true);
        const struct dispatch_facts facts = facts_before(t, 0, version);
        const struct dispatch_decision decision = dispatch_decide(&facts);
        if (decision.next == DISPATCH_CLAIM) {
            batch[n++] = (struct start){ .t = t };
            continue;
        }
        task_unreserve(t);
        task_follow(t, &decision);
    }
    if (n)
        claim_and_call(s, batch, n);
    /* Park what waits for a slow downstream: in hand it takes the room of others. */
    int64_t since_ms;
    while ((item = lanes_take_stuck(s->lanes, clock_mono_ms(), &since_ms))) {
        struct task_in_hand *t = taken(item, false);
        struct dispatch_facts facts = facts_before(t, FACT_SLOW, version);
        facts.since_ms = since_ms;
        const struct dispatch_decision decision = dispatch_decide(&facts);
        task_follow(t, &decision);
    }
    allowlist_feed_release(s->d->feed, version);
}

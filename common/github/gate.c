#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../model/ids.h"
#include "gate_private.h"
#include "github.h"

#define IN_FLIGHT_MAX       100     /* GitHub: "No more than 100 concurrent requests are allowed" */
#define IN_FLIGHT_AGAIN_MS  100     /* a call ends within that, mostly */
#define LIMIT_FIRST_WAIT_MS 60000   /* GitHub: "wait for at least one minute" */
#define LIMIT_DOUBLINGS     4       /* 1, 2, 4, 8, 16 minutes */
#define LIMIT_WAVERS_MS     1000    /* a limit that ends so little later is the same */
#define ALONE_AGAIN_MS      10000   /* after that Redis may be back, and have more */
#define QUEUE_MAX_MS        3600000 /* no moment is later than that after the first */
#define REFUSALS_MAX        1000

struct gate *gate_new(const struct budget_rules *rules)
{
    struct gate *g = mem_alloc(1, sizeof(*g));
    if (rules)
        g->rules = *rules;
    g->accounts.size = sizeof(struct account);
    g->refusals.size = sizeof(struct refusal);
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    table_clear(&g->accounts);
    table_clear(&g->refusals);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* Locked. What it gives lives as long as g. */
static struct account *account_of(struct gate *g, struct str repo)
{
    char name[REPO_MAX + 1];
    repo_account(name, repo);
    return table_make(&g->accounts, str_of(name));
}

/* Locked. Whose budget it is. */
static struct account *payer_of(struct gate *g, struct str repo)
{
    return account_of(g, g->rules.one_for_the_app ? STR_LIT("*") : repo);
}

/* What a call gets that was not sent. */
static struct github_answer refused(struct gate_user *u, enum gate_reason because, int64_t until_ms,
                                    const char *reason)
{
    snprintf(u->reason, sizeof(u->reason), "%s", reason);
    return (struct github_answer){ .err = ERR_RETRY,
                                   .because = because,
                                   .wait_until_ms = until_ms,
                                   .budget_left = -1,
                                   .reason = u->reason };
}

static struct github_answer limited(struct gate_user *u, const struct account *a)
{
    char text[REPO_MAX + 64], until[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms() + a->limited_until_ms - clock_mono_ms(), until);
    snprintf(text, sizeof(text), "GitHub asked us to wait for %s until %s", table_key(a).ptr,
             until);
    return refused(u, GATE_RATE_LIMIT, a->limited_until_ms, text);
}

/* Locked. */
static bool has_room(const struct gate_user *u, const struct account *a, enum budget_class class)
{
    int replicas = u->gate->rules.replicas, most = IN_FLIGHT_MAX / (replicas > 1 ? replicas : 1);
    if (class == BUDGET_REST || u->class == BUDGET_REST)
        most -= most / 4; /* left to the classes above */
    return a->in_flight < most || a->in_flight == 0;
}

/* Locked, as limited. The account's own reasons: all of its calls wait. */
static bool account_holds(struct gate_user *u, struct account *a, const struct gate_call *call,
                          struct github_answer *ret)
{
    int64_t now_ms = a->asked_ms = clock_mono_ms();
    if (a->limited_until_ms > now_ms) {
        *ret = limited(u, a);
        return true;
    }
    if (gate_is_open(a) && now_ms < a->probe_ms) {
        *ret = refused(u, GATE_BREAKER, a->probe_ms,
                       "the downstream failed again and again: its breaker is open");
        ret->since_ms = a->opened_ms;
        return true;
    }
    if (!call->inside && !has_room(u, a, call->class)) {
        *ret = refused(u, GATE_IN_FLIGHT, now_ms + IN_FLIGHT_AGAIN_MS,
                       "as many calls are in flight as GitHub allows");
        return true;
    }
    return false;
}

/* ---- the budget ------------------------------------------------------------------------------ */

struct budget_rules gate_rules_of(const struct gate *g, const struct account *payer, bool alone)
{
    struct budget_rules rules = g->rules;
    int64_t *requests = &rules.limit[BUDGET_REQUESTS_HOUR];
    if (payer->limit > 0 && payer->limit < *requests)
        *requests = payer->limit;
    return alone ? budget_rules_alone(&rules) : rules;
}

/* Locked. What the call costs, also by what GitHub said last. */
static struct gate_bill bill_of(const struct gate_user *u, const struct account *payer,
                                const struct gate_call *call, bool alone)
{
    struct budget_rules rules = gate_rules_of(u->gate, payer, alone);
    int64_t reset_us = payer->is_news ? payer->reset_ms * 1000 - clock_mono_us() : 0;
    struct gate_bill bill = {
        .shared = { .account = table_key(payer),
                    .downstream = call->downstream.ptr ? call->downstream : call->repo,
                    .pr = call->pr },
        .kind = call->kind,
        .class = call->class > u->class ? call->class : u->class,
    };
    budget_price(&rules, bill.kind, bill.class, reset_us > 0 ? payer->left : -1, reset_us,
                 &bill.shared.ask);
    return bill;
}

/* Locked. The refusal that such a call would get, also one whose time is over; one is made if that
 * is wanted, else NULL. Content has one for each downstream and pull request: one may be over its
 * share and another not. */
static struct refusal *refusal_of(struct gate *g, const struct gate_bill *bill, bool make)
{
    char key[2 * REPO_MAX + 64];
    if (!make && table_count(&g->refusals) == 0)
        return NULL;
    bool content = g->rules.content[bill->kind];
    const char *cost = content ? "content" : bill->kind == BUDGET_READ ? "read" : "write";
    snprintf(key, sizeof(key), "%.*s|%s|%s|%.*s#%" PRId64, STR_ARG(bill->shared.account),
             budget_class_names[bill->class], cost,
             STR_ARG(content ? bill->shared.downstream : STR_LIT("")),
             content ? bill->shared.pr : 0);
    struct refusal *r = table_get(&g->refusals, str_of(key));
    if (r || !make)
        return r;
    if (table_count(&g->refusals) >= REFUSALS_MAX)
        table_remove(&g->refusals, table_next(&g->refusals, NULL));
    return table_make(&g->refusals, str_of(key));
}

static struct github_answer used_up(struct gate_user *u, const struct gate_bill *bill,
                                    const struct refusal *r, int64_t until_ms)
{
    char text[2 * REPO_MAX], until[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms() + until_ms - clock_mono_ms(), until);
    snprintf(text, sizeof(text), "our own budget of %s for %s is used up for class %s until %s",
             r->what, u->gate->rules.one_for_the_app ? "the App" : bill->shared.account.ptr,
             budget_class_names[bill->class], until);
    return refused(u, GATE_BUDGET, until_ms, text);
}

/* Locked. Each that a refusal of the bucket meets gets a moment of its own. */
static void refuse(struct gate_user *u, const struct gate_bill *bill, struct refusal *r,
                   struct github_answer *ret)
{
    *ret = used_up(u, bill, r, r->next_ms);
    r->next_ms += r->step_ms;
    u->gate->waits[bill->class][r->bucket]++;
}

/* Locked. True while such a call is known to be refused. */
static bool is_refused(struct gate_user *u, const struct gate_bill *bill, struct github_answer *ret)
{
    struct refusal *r = refusal_of(u->gate, bill, false);
    bool now = r && r->until_ms > clock_mono_ms();
    if (now)
        refuse(u, bill, r, ret);
    return now;
}

/* Locked. */
static void shared_said(struct account *payer, const struct budget_answer *answer)
{
    int64_t now_us = clock_mono_us();
    payer->is_news = false;
    for (int i = 0; i < BUDGET_BUCKETS; i++)
        payer->state.full_us[i] = now_us + answer->used_us[i];
}

/* Locked, but not while it asks Redis. True: this process counted alone, and the bill says so. */
static bool take(struct gate_user *u, struct account *payer, const struct gate_call *call,
                 struct gate_bill *bill, struct budget_answer *ret)
{
    struct why why;
    int64_t limited_us = bill->shared.ask.limited_us;
    if (u->redis) {
        pthread_mutex_unlock(&u->gate->lock);
        enum err err = budget_take_shared(u->redis, &bill->shared, ret, &why);
        pthread_mutex_lock(&u->gate->lock);
        if (!err) {
            shared_said(payer, ret);
            return false;
        }
    }
    *bill = bill_of(u, payer, call, true);
    bill->shared.ask.limited_us = limited_us;
    payer->is_news = false;
    budget_take(&payer->state, &bill->shared.ask, clock_mono_us(), ret);
    return true;
}

/* Locked. False: it is refused, and so is what is like it until its moment. */
static bool is_taken(struct gate_user *u, struct account *payer, const struct gate_bill *bill,
                     const struct budget_answer *answer, bool alone, struct github_answer *ret)
{
    if (!answer->wait_us)
        return true;
    int64_t now_ms = clock_mono_ms(), wait_ms = (answer->wait_us + 999) / 1000;
    if (answer->limited) { /* another replica met it */
        if (payer->limited_until_ms < now_ms + wait_ms)
            payer->limited_until_ms = now_ms + wait_ms;
        *ret = limited(u, payer);
        return false;
    }
    if (alone && wait_ms > ALONE_AGAIN_MS)
        wait_ms = ALONE_AGAIN_MS;
    struct refusal *r = refusal_of(u->gate, bill, true);
    struct budget_rules rules = gate_rules_of(u->gate, payer, alone);
    budget_describe(&rules, answer->bucket, alone, r->what, sizeof(r->what));
    r->bucket = answer->bucket;
    r->until_ms = now_ms + wait_ms;
    r->step_ms = (bill->shared.ask.of[answer->bucket].cost_us + 999) / 1000;
    if (r->next_ms < r->until_ms || r->next_ms > r->until_ms + QUEUE_MAX_MS)
        r->next_ms = r->until_ms;
    refuse(u, bill, r, ret);
    return false;
}

/* Locked, but not while it asks Redis. */
static bool pay(struct gate_user *u, const struct gate_call *call, struct github_answer *ret)
{
    struct account *payer = payer_of(u->gate, call->repo);
    struct gate_bill bill = bill_of(u, payer, call, false);
    struct budget_answer answer;
    if (is_refused(u, &bill, ret))
        return false;
    bool alone = take(u, payer, call, &bill, &answer);
    return is_taken(u, payer, &bill, &answer, alone, ret);
}

/* ---- a call ---------------------------------------------------------------------------------- */

bool gate_enter(struct gate_user *u, const struct gate_call *call, struct github_answer *ret)
{
    pthread_mutex_lock(&u->gate->lock);
    struct account *a = account_of(u->gate, call->repo);
    bool may = !account_holds(u, a, call, ret) &&
               (call->paid || !budget_limits(&u->gate->rules) || pay(u, call, ret));
    if (may && gate_is_open(a))
        a->probe_ms = clock_mono_ms() + GATE_PROBE_MS;
    a->in_flight += may && !call->inside;
    pthread_mutex_unlock(&u->gate->lock);
    return may;
}

bool gate_reserve(struct gate_user *u, struct str repo)
{
    pthread_mutex_lock(&u->gate->lock);
    struct account *a = account_of(u->gate, repo);
    bool may = has_room(u, a, u->class);
    a->in_flight += may;
    pthread_mutex_unlock(&u->gate->lock);
    return may;
}

void gate_leave(struct gate_user *u, struct str repo)
{
    pthread_mutex_lock(&u->gate->lock);
    account_of(u->gate, repo)->in_flight--;
    pthread_mutex_unlock(&u->gate->lock);
}

bool gate_holds(struct gate_user *u, const struct gate_call *call, struct github_answer *ret)
{
    pthread_mutex_lock(&u->gate->lock);
    bool held = account_holds(u, account_of(u->gate, call->repo), call, ret);
    if (!held) {
        struct gate_bill bill = bill_of(u, payer_of(u->gate, call->repo), call, false);
        const struct refusal *r = refusal_of(u->gate, &bill, false);
        held = r && r->until_ms > clock_mono_ms();
        if (held)
            *ret = used_up(u, &bill, r, r->until_ms);
    }
    pthread_mutex_unlock(&u->gate->lock);
    return held;
}

bool gate_bill(struct gate_user *u, const struct gate_call *call, struct gate_bill *ret,
               struct github_answer *refused)
{
    struct gate_bill bill = { 0 };
    pthread_mutex_lock(&u->gate->lock);
    struct account *a = account_of(u->gate, call->repo);
    bool may = !account_holds(u, a, call, refused);
    if (may && !gate_is_open(a) && budget_limits(&u->gate->rules)) {
        bill = bill_of(u, payer_of(u->gate, call->repo), call, false);
        may = !is_refused(u, &bill, refused);
    }
    pthread_mutex_unlock(&u->gate->lock);
    *ret = bill;
    return may;
}

bool gate_paid(struct gate_user *u, const struct gate_bill *bill,
               const struct budget_answer *answer, struct github_answer *refused)
{
    pthread_mutex_lock(&u->gate->lock);
    struct account *payer = account_of(u->gate, bill->shared.account);
    shared_said(payer, answer);
    bool paid = is_taken(u, payer, bill, answer, false, refused);
    pthread_mutex_unlock(&u->gate->lock);
    return paid;
}

/* ---- an answer ------------------------------------------------------------------------------- */

/* Locked. */
static void breaker_answered(struct account *a, const struct github_answer *answer)
{
    int64_t now_ms = clock_mono_ms();
    bool failed = answer->err == ERR_UNKNOWN || (answer->err == ERR_RETRY && !answer->because);
    if (!failed && answer->sent_ms) {
        a->failures = 0;
    } else if (!failed) { /* it was too late to be sent: another may be the probe */
        a->probe_ms = now_ms;
    } else if (!gate_is_open(a)) { /* else it was the probe, or under way when it opened */
        a->failures++;
        a->asked_ms = a->opened_ms = now_ms;
        a->probe_ms = now_ms + GATE_PROBE_MS;
        snprintf(a->error, sizeof(a->error), "%s", answer->reason ? answer->reason : "");
    }
}

/* Locked. Where GitHub did not say until when, each limit in a row doubles the wait. */
static void limit_answered(struct account *a, struct github_answer *answer)
{
    int64_t now_ms = clock_mono_ms();
    if (answer->because != GATE_RATE_LIMIT) {
        a->limits_in_row = answer->err ? a->limits_in_row : 0;
        return;
    }
    if (!answer->wait_until_ms && a->limited_until_ms <= now_ms) {
        answer->wait_until_ms = now_ms + ((int64_t)LIMIT_FIRST_WAIT_MS << a->limits_in_row);
        a->limits_in_row += a->limits_in_row < LIMIT_DOUBLINGS;
    }
    if (answer->wait_until_ms < a->limited_until_ms) /* several calls were under way */
        answer->wait_until_ms = a->limited_until_ms;
    a->limited_until_ms = answer->wait_until_ms;
}

void gate_answered(struct gate_user *u, struct str repo, struct github_answer *answer)
{
    struct gate *g = u->gate;
    pthread_mutex_lock(&g->lock);
    struct account *a = account_of(g, repo);
    breaker_answered(a, answer);
    limit_answered(a, answer);
    int64_t until_ms = answer->because == GATE_RATE_LIMIT ? answer->wait_until_ms : 0;
    if (repo.len && answer->budget_left >= 0 && answer->budget_reset_ms) {
        a->left = answer->budget_left;
        a->limit = answer->budget_limit;
        a->reset_ms = answer->budget_reset_ms;
        a->is_news = true;
        if (!until_ms && !a->left)
            until_ms = a->reset_ms;
    }
    int64_t wait_us = 1000 * (until_ms - clock_mono_ms());
    if (wait_us > 0 && repo.len && budget_limits(&g->rules) && !g->rules.one_for_the_app &&
        1000 * until_ms > a->state.limited_us + 1000 * LIMIT_WAVERS_MS) {
        /* Of a read, which this very limit refuses: it takes nothing. */
        const struct gate_call read = { .repo = repo, .kind = BUDGET_READ };
        struct gate_bill bill = bill_of(u, a, &read, false);
        struct budget_answer ignored;
        a->state.limited_us = 1000 * until_ms;
        bill.shared.ask.limited_us = wait_us;
        (void)take(u, a, &read, &bill, &ignored);
    }
    pthread_mutex_unlock(&g->lock);
}

int64_t gate_probe_ms(struct gate *g, struct str repo)
{
    pthread_mutex_lock(&g->lock);
    const struct account *a = account_of(g, repo);
    int64_t probe_ms = gate_is_open(a) ? a->probe_ms : 0;
    pthread_mutex_unlock(&g->lock);
    return probe_ms;
}

#include "budget_payer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/table.h"
#include "../model/limits.h"
#include "../view/budget_shared.h"

#define REPORT_MS       1000
#define ALONE_AGAIN_MS  10000   /* after that Redis may be back, and have more */
#define QUEUE_MAX_MS    3600000 /* no moment is later than that after the first */
#define REFUSALS_MAX    1000
#define LIMIT_WAVERS_US 1000000 /* a limit that ends so little later is the same */
#define KEY_SIZE        (2 * REPO_MAX + 64)

/* All times are of the monotonic clock. */
struct account {
    struct budget_state state;        /* while Redis answers: what it said last */
    int64_t seen_limit;               /* x-ratelimit-limit; 0: unknown */
    int64_t seen_left, seen_reset_ms; /* GitHub's numbers, for the next call to take along */
};

/* Until then no such call is asked for. */
struct refusal {
    int64_t until_ms;
    int64_t next_ms, step_ms; /* the moment that the next one gets; and how much later one more */
    enum budget_bucket bucket;
    char what[96]; /* "900 points a minute" */
};

struct github_budget {
    struct budget_rules rules;
    pthread_mutex_t lock;  /* of what follows; not held while Redis is asked */
    struct table accounts; /* of struct account by owner in lower case; "*": the whole App */
    struct table refusals; /* of struct refusal, oldest first */
    int64_t waits[BUDGET_CLASSES][BUDGET_BUCKETS]; /* since they were reported */
};

struct github_budget *github_budget_new(const struct budget_rules *rules)
{
    struct github_budget *b = mem_alloc(1, sizeof(*b));
    b->rules = *rules;
    b->accounts.size = sizeof(struct account);
    b->refusals.size = sizeof(struct refusal);
    pthread_mutex_init(&b->lock, NULL);
    return b;
}

void github_budget_free(struct github_budget *b)
{
    if (!b)
        return;
    table_clear(&b->accounts);
    table_clear(&b->refusals);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Locked. What it gives lives as long as b. */
static struct account *account_of(struct github_budget *b, struct str repo)
{
    char name[REPO_MAX + 1];
    ptrdiff_t slash = str_find(repo, '/');
    if (slash >= 0)
        repo.len = (size_t)slash;
    str_lower(name, sizeof(name), b->rules.one_for_the_app ? STR_LIT("*") : repo);
    return table_make(&b->accounts, str_of(name));
}

/* Locked. The refusal that such a call would get, also one whose time is over, or NULL. Content has
 * one for each downstream and pull request: one may be over its share and another not. */
static struct refusal *refusal_find(struct github_budget *b, const struct account *a,
                                    struct str downstream, int64_t pr, enum budget_call call,
                                    enum budget_class class, char key[KEY_SIZE])
{
    bool content = b->rules.content[call];
    const char *cost = content ? "content" : call == BUDGET_READ ? "read" : "write";
    snprintf(key, KEY_SIZE, "%s|%s|%s|%.*s#%" PRId64, table_key(a).ptr, budget_class_names[class],
             cost, STR_ARG(content ? downstream : STR_LIT("")), content ? pr : 0);
    return table_get(&b->refusals, str_of(key));
}

/* What a call gets that was not sent; r is NULL when GitHub asked us to wait. */
static struct github_answer answer_of(struct budget_payer *p, const struct account *a,
                                      const struct refusal *r, enum budget_class class,
                                      int64_t until_ms)
{
    const char *who = p->budget->rules.one_for_the_app ? "the App" : table_key(a).ptr;
    char until[CLOCK_TEXT_SIZE];
    clock_format(clock_wall_ms() + until_ms - clock_mono_ms(), until);
    if (r) {
        snprintf(p->reason, sizeof(p->reason),
                 "our own budget of %s for %s is used up for class %s until %s", r->what, who,
                 budget_class_names[class], until);
    } else
        snprintf(p->reason, sizeof(p->reason), "GitHub asked us to wait for %s until %s", who,
                 until);
    return (struct github_answer){ .err = ERR_RETRY,
                                   .limited = true,
                                   .ours = r,
                                   .names_wait = !r,
                                   .wait_until_ms = until_ms,
                                   .budget_left = -1,
                                   .reason = p->reason };
}

/* Locked. The limit of requests is the lower of ours and GitHub's. */
static struct budget_rules rules_of(const struct github_budget *b, const struct account *a)
{
    struct budget_rules rules = b->rules;
    int64_t *requests = &rules.limit[BUDGET_REQUESTS_HOUR];
    if (a->seen_limit > 0 && a->seen_limit < *requests)
        *requests = a->seen_limit;
    return rules;
}

/* Locked. What it costs by these rules, and by what GitHub said last. */
static void price(const struct account *a, const struct budget_rules *rules,
                  struct github_bill *bill)
{
    int64_t reset_us = a->seen_reset_ms * 1000 - clock_mono_us();
    budget_price(rules, bill->call, bill->class, reset_us > 0 ? a->seen_left : -1, reset_us,
                 &bill->shared.ask);
}

/* Locked. */
static struct github_bill bill_of(struct github_budget *b, struct account *a, struct str downstream,
                                  int64_t pr, enum budget_call call, enum budget_class class)
{
    struct budget_rules rules = rules_of(b, a);
    struct github_bill bill = { .shared = { .account = table_key(a),
                                            .downstream = downstream,
                                            .pr = pr },
                                .call = call,
                                .class = class };
    price(a, &rules, &bill);
    return bill;
}

/* Locked. */
static void shared_said(struct account *a, const struct budget_answer *answer)
{
    int64_t now_us = clock_mono_us();
    a->seen_reset_ms = 0; /* it knows what GitHub said */
    for (int i = 0; i < BUDGET_BUCKETS; i++)
        a->state.full_us[i] = now_us + answer->used_us[i];
}

/* Locked, but not while it asks Redis. True: this process counted alone, and the bill says so. */
static bool take(struct budget_payer *p, struct account *a, struct github_bill *bill,
                 struct budget_answer *ret)
{
    struct github_budget *b = p->budget;
    struct why why;
    int64_t limited_us = bill->shared.ask.limited_us;
    if (p->redis) {
        pthread_mutex_unlock(&b->lock);
        enum err err = budget_take_shared(p->redis, &bill->shared, ret, &why);
        pthread_mutex_lock(&b->lock);
        if (!err) {
            shared_said(a, ret);
            return false;
        }
    }
    struct budget_rules rules = rules_of(b, a);
    rules = budget_rules_alone(&rules);
    price(a, &rules, bill);
    a->seen_reset_ms = 0;
    bill->shared.ask.limited_us = limited_us;
    budget_take(&a->state, &bill->shared.ask, clock_mono_us(), ret);
    return true;
}

/* Locked. Each that a refusal of the bucket meets gets a moment of its own. */
static void refuse(struct budget_payer *p, const struct account *a, struct refusal *r,
                   enum budget_class class, struct github_answer *ret)
{
    *ret = answer_of(p, a, r, class, r->next_ms);
    r->next_ms += r->step_ms;
    p->budget->waits[class][r->bucket]++;
}

/* Locked. False: it is refused, and so is what is like it until its moment. */
static bool answered(struct budget_payer *p, struct account *a, const struct github_bill *bill,
                     const struct budget_answer *answer, bool alone, struct github_answer *ret)
{
    struct github_budget *b = p->budget;
    char what[64], key[KEY_SIZE];
    if (!answer->wait_us)
        return true;
    int64_t now_ms = clock_mono_ms(), wait_ms = (answer->wait_us + 999) / 1000;
    if (answer->limited) {
        *ret = answer_of(p, a, NULL, bill->class, now_ms + wait_ms);
        return false;
    }
    if (alone && wait_ms > ALONE_AGAIN_MS)
        wait_ms = ALONE_AGAIN_MS;
    struct refusal *r =
        refusal_find(b, a, bill->shared.downstream, bill->shared.pr, bill->call, bill->class, key);
    if (!r) {
        if (table_count(&b->refusals) >= REFUSALS_MAX)
            table_remove(&b->refusals, table_next(&b->refusals, NULL));
        r = table_make(&b->refusals, str_of(key));
    }
    struct budget_rules rules = rules_of(b, a);
    if (alone)
        rules = budget_rules_alone(&rules);
    budget_describe(&rules, answer->bucket, what, sizeof(what));
    snprintf(r->what, sizeof(r->what), "%s%s", what, alone ? " without Redis" : "");
    r->bucket = answer->bucket;
    r->until_ms = now_ms + wait_ms;
    r->step_ms = (bill->shared.ask.of[answer->bucket].cost_us + 999) / 1000;
    if (r->next_ms < r->until_ms || r->next_ms > r->until_ms + QUEUE_MAX_MS)
        r->next_ms = r->until_ms;
    refuse(p, a, r, bill->class, ret);
    return false;
}

/* Locked. False: it is known to be refused. */
static bool make_bill(struct budget_payer *p, struct account *a, struct str downstream, int64_t pr,
                      enum budget_call call, enum budget_class class, struct github_bill *ret,
                      struct github_answer *refused)
{
    char key[KEY_SIZE];
    struct refusal *r = refusal_find(p->budget, a, downstream, pr, call, class, key);
    if (r && r->until_ms > clock_mono_ms()) {
        refuse(p, a, r, class, refused);
        return false;
    }
    *ret = bill_of(p->budget, a, downstream, pr, call, class);
    return true;
}

static bool has_limits(const struct budget_payer *p)
{
    return p->budget && budget_limits(&p->budget->rules);
}

static enum budget_class class_of(const struct budget_payer *p, enum budget_class class)
{
    return class > p->class ? class : p->class;
}

bool budget_bill(struct budget_payer *p, struct str repo, struct github_bill *ret,
                 struct github_answer *refused)
{
    *ret = (struct github_bill){ 0 };
    if (!has_limits(p))
        return true;
    pthread_mutex_lock(&p->budget->lock);
    bool made =
        make_bill(p, account_of(p->budget, repo), repo, 0, BUDGET_DISPATCH, p->class, ret, refused);
    pthread_mutex_unlock(&p->budget->lock);
    return made;
}

bool budget_bill_answered(struct budget_payer *p, const struct github_bill *bill,
                          const struct budget_answer *answer, struct github_answer *refused)
{
    pthread_mutex_lock(&p->budget->lock);
    struct account *a = account_of(p->budget, bill->shared.account);
    shared_said(a, answer);
    bool paid = answered(p, a, bill, answer, false, refused);
    pthread_mutex_unlock(&p->budget->lock);
    return paid;
}

static enum budget_call call_of(const struct github_request *request)
{
    return request->creates_next ? BUDGET_SEARCH : budget_call_of(request->method, request->path);
}

bool budget_pay(struct budget_payer *p, const struct github_request *request,
                struct github_answer *ret)
{
    struct str downstream = request->downstream.ptr ? request->downstream : request->repo;
    struct github_bill bill;
    struct budget_answer answer;
    if (!has_limits(p))
        return true;
    pthread_mutex_lock(&p->budget->lock);
    struct account *a = account_of(p->budget, request->repo);
    bool paid = make_bill(p, a, downstream, request->pr, call_of(request),
                          class_of(p, request->class), &bill, ret);
    if (paid) {
        bool alone = take(p, a, &bill, &answer);
        paid = answered(p, a, &bill, &answer, alone, ret);
    }
    pthread_mutex_unlock(&p->budget->lock);
    return paid;
}

bool budget_held(struct budget_payer *p, struct str repo, struct str downstream, int64_t pr,
                 enum budget_call call, enum budget_class class, struct github_answer *ret)
{
    struct github_budget *b = p->budget;
    char key[KEY_SIZE];
    if (!b)
        return false;
    class = class_of(p, class);
    pthread_mutex_lock(&b->lock);
    const struct account *a = account_of(b, repo);
    const struct refusal *r = refusal_find(b, a, downstream, pr, call, class, key);
    bool held = r && r->until_ms > clock_mono_ms();
    if (held)
        *ret = answer_of(p, a, r, class, r->until_ms);
    pthread_mutex_unlock(&b->lock);
    return held;
}

void budget_saw(struct budget_payer *p, struct str repo, const struct github_answer *answer)
{
    struct github_budget *b = p->budget;
    int64_t until_us = 1000 * (answer->limited            ? answer->wait_until_ms
                               : answer->budget_left == 0 ? answer->budget_reset_ms
                                                          : 0);
    if (!has_limits(p) || b->rules.one_for_the_app)
        return;
    pthread_mutex_lock(&b->lock);
    struct account *a = account_of(b, repo);
    if (answer->budget_left >= 0) {
        a->seen_limit = answer->budget_limit;
        a->seen_left = answer->budget_left;
        a->seen_reset_ms = answer->budget_reset_ms;
    }
    int64_t now_us = clock_mono_us();
    if (until_us > now_us && until_us > a->state.limited_us + LIMIT_WAVERS_US) {
        /* Of a read, which this very limit refuses: it takes nothing. */
        struct github_bill bill = bill_of(b, a, repo, 0, BUDGET_READ, BUDGET_AGGREGATE);
        struct budget_answer ignored;
        a->state.limited_us = until_us;
        bill.shared.ask.limited_us = until_us - now_us;
        (void)take(p, a, &bill, &ignored);
    }
    pthread_mutex_unlock(&b->lock);
}

/* Locked. Of the account that has least; -1: there is none, or no limit. */
static int64_t least_left(const struct github_budget *b, enum budget_class class,
                          enum budget_bucket bucket, int64_t now_us)
{
    int64_t least = -1;
    for (const struct account *a = NULL; (a = table_next(&b->accounts, a));) {
        struct budget_rules rules = rules_of(b, a);
        int64_t left = budget_left(&rules, bucket, class, a->state.full_us[bucket] - now_us);
        if (least < 0 || left < least)
            least = left;
    }
    return least;
}

void budget_report(struct budget_payer *p, struct metrics *m, const struct budget_families *to)
{
    struct github_budget *b = p->budget;
    int64_t now_us = clock_mono_us();
    bool is_time = now_us >= p->report_us;
    if (!b)
        return;
    if (is_time)
        p->report_us = now_us + REPORT_MS * 1000;
    pthread_mutex_lock(&b->lock);
    for (enum budget_class c = 0; c < BUDGET_CLASSES; c++)
        for (enum budget_bucket i = 0; i < BUDGET_BUCKETS; i++) {
            const struct str *labels =
                METRIC_LABELS(str_of(budget_class_names[c]), str_of(budget_bucket_names[i]));
            int64_t left = is_time ? least_left(b, c, i, now_us) : -1;
            if (left >= 0)
                metrics_set(m, to->left, labels, (double)left);
            if (b->waits[c][i])
                metrics_add(m, to->waits, labels, (double)b->waits[c][i]);
            b->waits[c][i] = 0;
        }
    pthread_mutex_unlock(&b->lock);
}

#include "budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../model/limits.h"
#include "budget_parts.h"

#define SLICE_MAX     32
#define SLICES        20 /* at least so many slices in a limit: what lapses is little */
#define TELL_MS       1000
#define PACE_AHEAD_MS 3600000 /* nobody is told to come later than that after the first */
#define PART_AGAIN_MS 10000   /* after that the store may be back, and have more */
#define WHOLE_APP     "*"     /* no owner's name */
#define COSTS         3       /* read, write, content */
#define LIMITED_BY_MS 1000    /* a limit that ends so little later is the same */

/* ---- of a thread ----------------------------------------------------------------------------- */

/* What is in hand for calls of one class and cost. Times are of the monotonic clock. */
struct slice {
    int calls, size;
    int64_t until_ms;
    int64_t refused_ms; /* until then the answer is known */
    int64_t next_ms;    /* when the next one that is refused should come */
    int64_t pace_ms;
    enum budget_bucket bucket; /* that refused */
    bool limited;              /* none of ours refused: GitHub told one of us to wait */
    bool from_part;
};

struct purse {
    UT_hash_handle hh;
    char account[REPO_MAX + 1];
    struct slice slices[BUDGET_CLASSES][COSTS];
    int64_t seen_left, seen_limit, seen_reset_ms; /* GitHub's last word */
    int64_t limited_ms;                           /* and until then it told us to wait */
    int64_t refusal_ms;                           /* the last one stands until then */
    struct github_answer refusal;
    char reason[512];
};

/* Since the last purses_tell. */
struct budget_stats {
    int64_t waits[BUDGET_CLASSES][BUDGET_BUCKETS];
    int64_t shared, part; /* asks */
};

struct purses {
    struct github_budget *budget;
    github_budget_store_fn *store;
    void *opaque;
    bool low, limits;
    struct purse *by_account;
    struct budget_stats stats;
    int64_t tell_ms; /* when what is left is told again */
};

struct purses *purses_new(struct github_budget *b, github_budget_store_fn *store, void *opaque,
                          bool low)
{
    struct purses *p = mem_alloc(1, sizeof(*p));
    p->budget = b;
    p->store = store;
    p->opaque = opaque;
    p->low = low;
    p->limits = b && budget_limits(&b->rules);
    return p;
}

void purses_free(struct purses *p)
{
    struct purse *one, *next;
    if (!p)
        return;
    HASH_ITER(hh, p->by_account, one, next)
    {
        HASH_DEL(p->by_account, one);
        free(one);
    }
    free(p);
}

static struct purse *purse_at(struct purses *p, const char *account)
{
    struct purse *one;
    HASH_FIND_STR(p->by_account, account, one);
    if (one)
        return one;
    one = mem_alloc(1, sizeof(*one));
    memcpy(one->account, account, strlen(account) + 1);
    one->seen_left = -1;
    HASH_ADD_STR(p->by_account, account, one);
    return one;
}

static struct purse *purse_of_owner(struct purses *p, struct str repo)
{
    char account[REPO_MAX + 1];
    ptrdiff_t slash = str_find(repo, '/');
    if (slash >= 0)
        repo.len = (size_t)slash;
    str_lower(account, sizeof(account), repo);
    return purse_at(p, account);
}

static struct purse *purse_of(struct purses *p, struct str repo)
{
    return p->budget->rules.whole_app ? purse_at(p, WHOLE_APP) : purse_of_owner(p, repo);
}

/* So many calls that what lapses in a second is a small part of the limit. */
static int slice_max(const struct budget_rules *rules, const struct budget_cost *cost)
{
    int64_t max = SLICE_MAX;
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        if (!rules->limit[b] || !cost->of[b])
            continue;
        int64_t calls = rules->limit[b] / cost->of[b] / SLICES;
        if (calls < max)
            max = calls;
    }
    return max > 1 ? (int)max : 1;
}

/* Used up before its time: twice as many. Lapsed: as many as were used. */
static void resize(struct slice *s, int64_t now_ms, int max)
{
    if (s->calls)
        s->size -= s->calls;
    else if (now_ms < s->until_ms)
        s->size *= 2;
    if (s->size > max)
        s->size = max;
    if (s->size < 1)
        s->size = 1;
}

/* Asks the store, or takes of this process's part when it is away. */
static void ask(struct purses *p, struct purse *one, struct budget_ask *what, int64_t now_ms,
                struct budget_grant *grant, struct slice *s)
{
    struct why why;
    struct budget_windows untold;
    budget_untold_take(p->budget, one->account, now_ms, what, &untold);
    s->from_part = !p->store || p->store(p->opaque, &p->budget->rules, what, grant, &why) != OK;
    if (s->from_part)
        budget_take_part(p->budget, one->account, now_ms, what, &untold, grant);
    else
        budget_took(p->budget, one->account, now_ms, what, grant);
    *(s->from_part ? &p->stats.part : &p->stats.shared) += 1;
}

static void refill(struct purses *p, struct purse *one, struct slice *s,
                   const struct budget_cost *cost, bool low)
{
    const struct budget_rules *rules = &p->budget->rules;
    int64_t now = clock_mono_ms();
    struct budget_grant grant;
    resize(s, now, slice_max(rules, cost));
    struct budget_ask what = {
        .account = str_of(one->account),
        .low = low,
        .calls = s->size,
        .cost = *cost,
        .seen_left = one->seen_reset_ms > now ? one->seen_left : -1,
        .seen_limit = one->seen_limit,
        .seen_reset_ms = one->seen_reset_ms - now,
        .seen_limited_ms = one->limited_ms - now,
    };
    ask(p, one, &what, now, &grant, s);
    s->calls = s->size = grant.calls;
    s->until_ms = now + BUDGET_HAND_MS;
    if (s->from_part && !grant.limited && grant.wait_ms > PART_AGAIN_MS)
        grant.wait_ms = PART_AGAIN_MS;
    s->refused_ms = grant.calls ? 0 : now + grant.wait_ms;
    if (grant.calls)
        return;
    s->bucket = grant.bucket;
    s->limited = grant.limited;
    s->pace_ms =
        s->limited
            ? 0
            : budget_pace_ms(rules, s->bucket,
                             budget_cap(rules, s->bucket, low, s->from_part, cost->of[s->bucket]),
                             cost->of[s->bucket]);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void explain(const struct purses *p, struct purse *one, const struct slice *s, bool low,
                    int64_t until_wall_ms)
{
    const struct budget_rules *rules = &p->budget->rules;
    char until[CLOCK_TEXT_SIZE], what[64], kept[48] = "", part[48] = "";
    clock_format(until_wall_ms, until);
    budget_describe(rules, s->bucket, what, sizeof(what));
    if (s->limited) {
        snprintf(one->reason, sizeof(one->reason), "GitHub told us to wait for %s until %s",
                 one->account, until);
        return;
    }
    if (low && rules->kept_percent)
        snprintf(kept, sizeof(kept), " (less %d %% for L4 and check runs)", rules->kept_percent);
    if (s->from_part)
        snprintf(part, sizeof(part), ", of which 1/%d without Redis,", rules->replicas);
    snprintf(one->reason, sizeof(one->reason),
             "our own budget of %s%s%s for %s is used up until %s", what, kept, part,
             rules->whole_app ? "the App" : one->account, until);
}

static struct github_answer refusal_of(const struct purse *one, const struct slice *s,
                                       int64_t until_ms)
{
    return (struct github_answer){
        .err = ERR_RETRY,
        .limited = true,
        .ours = !s->limited,
        .told = s->limited,
        .wait_until_ms = until_ms,
        .budget_left = -1,
        .reason = one->reason,
    };
}

/* Each is told a moment of its own: when all came at once, all but a few would be refused again. */
static void refuse(struct purses *p, struct purse *one, struct slice *s, bool low,
                   struct github_answer *ret)
{
    int64_t now = clock_mono_ms();
    if (s->next_ms < s->refused_ms || s->next_ms > s->refused_ms + PACE_AHEAD_MS)
        s->next_ms = s->refused_ms;
    explain(p, one, s, low, clock_wall_ms() + s->refused_ms - now);
    /* Where GitHub spoke there is no queue, and its word is not about ours. */
    one->refusal = refusal_of(one, s, s->limited ? s->refused_ms : s->next_ms);
    one->refusal_ms = s->refused_ms;
    s->next_ms += s->pace_ms;
    p->stats.waits[low][s->bucket] += !s->limited;
    *ret = one->refusal;
}

static size_t cost_kind(const struct budget_rules *rules, enum budget_call call)
{
    if (call == BUDGET_READ)
        return 0;
    return rules->content[call] ? 2 : 1;
}

bool purses_take(struct purses *p, struct str repo, const char *method, const char *path, bool low,
                 struct github_answer *ret)
{
    if (!p->limits)
        return true;
    low |= p->low;
    enum budget_call call = budget_call_of(method, path);
    struct budget_cost cost = budget_cost_of(&p->budget->rules, call);
    struct purse *one = purse_of(p, repo);
    struct slice *s = &one->slices[low][cost_kind(&p->budget->rules, call)];
    int64_t now = clock_mono_ms();
    if (now >= s->refused_ms && (!s->calls || now >= s->until_ms))
        refill(p, one, s, &cost, low);
    if (s->calls && now < s->until_ms) {
        s->calls--;
        return true;
    }
    refuse(p, one, s, low, ret);
    return false;
}

bool purses_held(struct purses *p, struct str repo, enum budget_call call, bool low,
                 struct github_answer *ret)
{
    if (!p->limits)
        return false;
    low |= p->low;
    struct purse *one = purse_of(p, repo);
    const struct slice *s = &one->slices[low][cost_kind(&p->budget->rules, call)];
    int64_t now = clock_mono_ms();
    if (s->refused_ms <= now)
        return false;
    explain(p, one, s, low, clock_wall_ms() + s->refused_ms - now);
    *ret = refusal_of(one, s, s->refused_ms);
    return true;
}

bool purses_refused(struct purses *p, struct str repo, struct github_answer *ret)
{
    const struct purse *one = p->limits ? purse_of(p, repo) : NULL;
    if (!one || one->refusal_ms <= clock_mono_ms())
        return false;
    *ret = one->refusal;
    return true;
}

void purses_seen(struct purses *p, struct str repo, const struct github_answer *answer)
{
    if (answer->budget_left < 0 || !answer->budget_reset_ms)
        return;
    struct purse *one = purse_of_owner(p, repo); /* of the whole App it says nothing */
    one->seen_left = answer->budget_left;
    one->seen_limit = answer->budget_limit;
    one->seen_reset_ms = answer->budget_reset_ms;
}

void purses_limited(struct purses *p, struct str repo, int64_t until_ms)
{
    if (!p->limits || p->budget->rules.whole_app)
        return;
    struct purse *one = purse_of_owner(p, repo);
    struct budget_grant grant;
    struct slice none = { 0 };
    int64_t now = clock_mono_ms();
    if (until_ms <= now || until_ms <= one->limited_ms + LIMITED_BY_MS)
        return;
    one->limited_ms = until_ms;
    struct budget_ask what = {
        .account = str_of(one->account),
        .low = p->low,
        .seen_left = -1,
        .seen_limited_ms = until_ms - now,
    };
    ask(p, one, &what, now, &grant, &none);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static const struct str classes[BUDGET_CLASSES] = {
    [BUDGET_HIGH] = { "high", 4 },
    [BUDGET_LOW] = { "low", 3 },
};

/* Of the installation that has least; GitHub's hour over, it has all again. -1: none was seen. */
static int64_t least_seen(const struct purses *p, int64_t now_ms)
{
    int64_t least = -1;
    for (const struct purse *one = p->by_account; one; one = one->hh.next) {
        bool over = one->seen_reset_ms <= now_ms && one->seen_limit > 0;
        int64_t left = over ? one->seen_limit : one->seen_left;
        if (left >= 0 && (least < 0 || left < least))
            least = left;
    }
    return least;
}

static void tell_left(struct purses *p, struct metrics *m, const struct budget_families *to,
                      struct str who, int64_t now_ms)
{
    int64_t seen = least_seen(p, now_ms);
    if (seen >= 0)
        metrics_set(m, to->github, METRIC_LABELS(who), (double)seen);
    for (int c = 0; p->limits && c < BUDGET_CLASSES; c++)
        for (int b = 0; b < BUDGET_BUCKETS; b++) {
            int64_t left =
                budget_least_left(p->budget, (enum budget_class)c, (enum budget_bucket)b, now_ms);
            if (left >= 0)
                metrics_set(m, to->left, METRIC_LABELS(classes[c], str_of(budget_bucket_names[b])),
                            (double)left);
        }
}

void purses_tell(struct purses *p, struct metrics *m, const struct budget_families *to,
                 struct str who)
{
    int64_t now = clock_mono_ms();
    for (int c = 0; c < BUDGET_CLASSES; c++)
        for (int b = 0; b < BUDGET_BUCKETS; b++)
            if (p->stats.waits[c][b])
                metrics_add(m, to->waits, METRIC_LABELS(classes[c], str_of(budget_bucket_names[b])),
                            (double)p->stats.waits[c][b]);
    if (p->stats.shared)
        metrics_add(m, to->slices, METRIC_LABELS(STR_LIT("shared")), (double)p->stats.shared);
    if (p->stats.part)
        metrics_add(m, to->slices, METRIC_LABELS(STR_LIT("part")), (double)p->stats.part);
    p->stats = (struct budget_stats){ 0 };
    if (now < p->tell_ms)
        return;
    p->tell_ms = now + TELL_MS;
    tell_left(p, m, to, who, now);
}

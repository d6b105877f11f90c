#include "budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* GitHub lets the end of its hour waver by a second or so from answer to answer. */
#define RESET_WAVERS_MS 5000

static const struct {
    const char *unit, *window;
    int minutes;
} buckets[BUDGET_BUCKETS] = {
    [BUDGET_REQUESTS_HOUR] = { "requests", "an hour", 60 },
    [BUDGET_POINTS_MINUTE] = { "points", "a minute", 1 },
    [BUDGET_CONTENT_MINUTE] = { "contents", "a minute", 1 },
    [BUDGET_CONTENT_HOUR] = { "contents", "an hour", 60 },
};

const char *const budget_bucket_names[BUDGET_BUCKETS] = {
    [BUDGET_REQUESTS_HOUR] = "requests_hour",
    [BUDGET_POINTS_MINUTE] = "points_minute",
    [BUDGET_CONTENT_MINUTE] = "content_minute",
    [BUDGET_CONTENT_HOUR] = "content_hour",
};

static const struct {
    const char *name, *method, *end; /* end of the path; NULL: any */
} calls[BUDGET_CALLS] = {
    [BUDGET_DISPATCH] = { "dispatch", "POST", "/dispatches" },
    [BUDGET_CHECK_RUN] = { "check_run", "POST", "/check-runs" },
    [BUDGET_COMMENT] = { "comment", "POST", "/comments" },
    [BUDGET_WRITE] = { NULL, NULL, NULL },
    [BUDGET_READ] = { NULL, "GET", NULL },
};

bool budget_limits(const struct budget_rules *rules)
{
    for (int b = 0; b < BUDGET_BUCKETS; b++)
        if (rules->limit[b] > 0)
            return true;
    return false;
}

bool budget_content_parse(struct budget_rules *rules, struct str text)
{
    struct str name;
    memset(rules->content, 0, sizeof(rules->content));
    if (str_is(text, "none"))
        return true;
    while (str_split(&text, ',', &name)) {
        bool known = false;
        for (int c = 0; c < BUDGET_CALLS; c++)
            if (calls[c].name && str_is(str_trim(name), calls[c].name))
                known = rules->content[c] = true;
        if (!known)
            return false;
    }
    return true;
}

enum budget_call budget_call_of(const char *method, const char *path)
{
    for (int c = 0; c < BUDGET_CALLS; c++)
        if (calls[c].method && strcmp(method, calls[c].method) == 0 &&
            (!calls[c].end || str_ends(str_of(path), calls[c].end)))
            return (enum budget_call)c;
    return BUDGET_WRITE;
}

struct budget_cost budget_cost_of(const struct budget_rules *rules, enum budget_call call)
{
    int content = rules->content[call];
    return (struct budget_cost){ {
        [BUDGET_REQUESTS_HOUR] = 1,
        [BUDGET_POINTS_MINUTE] = call == BUDGET_READ ? 1 : 5,
        [BUDGET_CONTENT_MINUTE] = content,
        [BUDGET_CONTENT_HOUR] = content,
    } };
}

int64_t budget_window_ms(const struct budget_rules *rules, enum budget_bucket bucket)
{
    return rules->minute_ms * buckets[bucket].minutes;
}

int64_t budget_cap(const struct budget_rules *rules, enum budget_bucket bucket, bool low, bool part,
                   int cost)
{
    int64_t cap = rules->limit[bucket];
    if (part)
        cap /= rules->replicas;
    if (low)
        cap = cap * (100 - rules->kept_percent) / 100;
    return cap < cost ? cost : cap;
}

static int64_t slot_ms(const struct budget_rules *rules, enum budget_bucket bucket)
{
    return budget_window_ms(rules, bucket) / BUDGET_SLOTS;
}

int64_t budget_pace_ms(const struct budget_rules *rules, enum budget_bucket bucket, int64_t cap,
                       int cost)
{
    int64_t counted_ms = budget_window_ms(rules, bucket) + BUDGET_LIFE_MS + slot_ms(rules, bucket);
    return counted_ms * cost / cap;
}

void budget_describe(const struct budget_rules *rules, enum budget_bucket bucket, char *to,
                     size_t size)
{
    snprintf(to, size, "%" PRId64 " %s %s", rules->limit[bucket], buckets[bucket].unit,
             buckets[bucket].window);
}

/* ---- windows --------------------------------------------------------------------------------- */

static int32_t *slot_at(struct budget_window *w, int64_t slot)
{
    return &w->taken[slot % BUDGET_RING];
}

/* How many slots before the present one still count. */
static int64_t slots_back(const struct budget_rules *rules, enum budget_bucket bucket)
{
    int64_t width = slot_ms(rules, bucket);
    return BUDGET_SLOTS + (BUDGET_LIFE_MS + width - 1) / width;
}

/* Forgets what counts no more. */
static void advance(struct budget_window *w, int64_t slot)
{
    if (slot - w->newest >= BUDGET_RING)
        memset(w->taken, 0, sizeof(w->taken));
    else
        for (int64_t s = w->newest + 1; s <= slot; s++)
            *slot_at(w, s) = 0;
    if (slot > w->newest)
        w->newest = slot;
}

static int64_t taken(struct budget_window *w, int64_t back)
{
    int64_t sum = 0;
    for (int64_t s = w->newest - back; s <= w->newest; s++)
        sum += s < 0 ? 0 : *slot_at(w, s);
    return sum;
}

int64_t budget_windows_taken(struct budget_windows *w, const struct budget_rules *rules,
                             enum budget_bucket bucket, int64_t now_ms)
{
    advance(&w->of[bucket], now_ms / slot_ms(rules, bucket));
    return taken(&w->of[bucket], slots_back(rules, bucket));
}

/* When enough of the oldest slots are gone, from now on. */
static int64_t wait_ms(struct budget_window *w, const struct budget_rules *rules,
                       enum budget_bucket bucket, int64_t too_many, int64_t now_ms)
{
    int64_t back = slots_back(rules, bucket), width = slot_ms(rules, bucket);
    int64_t s = w->newest - back;
    for (; s < w->newest; s++) {
        too_many -= s < 0 ? 0 : *slot_at(w, s);
        if (too_many <= 0)
            break;
    }
    return (s + back + 1) * width - now_ms;
}

void budget_windows_add(struct budget_windows *w, const struct budget_rules *rules,
                        const struct budget_cost *cost, int n_calls, int64_t now_ms)
{
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t slot = now_ms / slot_ms(rules, (enum budget_bucket)b);
        advance(&w->of[b], slot);
        *slot_at(&w->of[b], w->of[b].newest) += n_calls * cost->of[b];
    }
    if (w->reset_ms > now_ms)
        w->left -= n_calls * cost->of[BUDGET_REQUESTS_HOUR];
}

/* Downwards within one of GitHub's hours. */
static void see(struct budget_windows *w, const struct budget_ask *ask, int64_t now_ms)
{
    int64_t reset_ms = now_ms + ask->seen_reset_ms;
    if (ask->seen_limited_ms > 0 && now_ms + ask->seen_limited_ms > w->limited_ms)
        w->limited_ms = now_ms + ask->seen_limited_ms;
    if (ask->seen_left < 0 || ask->seen_reset_ms <= 0 || reset_ms < w->reset_ms - RESET_WAVERS_MS)
        return;
    if (w->reset_ms <= now_ms || reset_ms > w->reset_ms + RESET_WAVERS_MS) {
        w->reset_ms = reset_ms;
        w->limit = ask->seen_limit;
        w->left = ask->seen_left;
    } else if (ask->seen_left < w->left)
        w->left = ask->seen_left;
}

static void refuse(struct budget_grant *ret, enum budget_bucket bucket, int64_t ms)
{
    ret->calls = 0;
    if (ms <= ret->wait_ms)
        return;
    ret->wait_ms = ms;
    ret->bucket = bucket;
}

/* How many calls there is room for in one bucket. */
static void fit(struct budget_windows *w, const struct budget_rules *rules, enum budget_bucket b,
                const struct budget_ask *ask, bool part, int64_t now_ms, struct budget_grant *ret)
{
    int cost = ask->cost.of[b];
    int64_t used = budget_windows_taken(w, rules, b, now_ms);
    int64_t cap = budget_cap(rules, b, ask->low, part, cost);
    ret->left[b] = cap > used ? cap - used : 0;
    if (!cost)
        return;
    if (used + cost > cap)
        refuse(ret, b, wait_ms(&w->of[b], rules, b, used + cost - cap, now_ms));
    else if (ret->calls > (cap - used) / cost)
        ret->calls = (int)((cap - used) / cost);
}

/* What GitHub says is left is one hour's requests. */
static void fit_seen(const struct budget_windows *w, const struct budget_rules *rules,
                     const struct budget_ask *ask, int64_t now_ms, struct budget_grant *ret)
{
    enum budget_bucket b = BUDGET_REQUESTS_HOUR;
    if (w->reset_ms <= now_ms || !rules->limit[b])
        return;
    int64_t limit = w->limit > 0 && w->limit < rules->limit[b] ? w->limit : rules->limit[b];
    int64_t kept = ask->low ? limit * rules->kept_percent / 100 : 0;
    int64_t left = w->left > kept ? w->left - kept : 0;
    if (left < ret->left[b])
        ret->left[b] = left;
    if (left < ask->cost.of[b])
        refuse(ret, b, w->reset_ms - now_ms);
    else if (ret->calls > left)
        ret->calls = (int)left;
}

static void fit_limited(const struct budget_windows *w, int64_t now_ms, struct budget_grant *ret)
{
    int64_t wait_ms = w->limited_ms - now_ms;
    if (wait_ms <= 0)
        return;
    ret->calls = 0;
    ret->limited = wait_ms > ret->wait_ms;
    if (ret->limited)
        ret->wait_ms = wait_ms;
}

void budget_windows_ask(struct budget_windows *w, const struct budget_rules *rules,
                        const struct budget_ask *ask, bool part, int64_t now_ms,
                        struct budget_grant *ret)
{
    *ret = (struct budget_grant){ .calls = ask->calls };
    see(w, ask, now_ms);
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        ret->left[b] = -1;
        if (rules->limit[b])
            fit(w, rules, (enum budget_bucket)b, ask, part, now_ms, ret);
    }
    fit_seen(w, rules, ask, now_ms, ret);
    fit_limited(w, now_ms, ret);
    if (!ret->calls)
        return;
    budget_windows_add(w, rules, &ask->cost, ret->calls, now_ms);
    for (int b = 0; b < BUDGET_BUCKETS; b++)
        if (ret->left[b] > 0)
            ret->left[b] -= ret->calls * ask->cost.of[b];
}

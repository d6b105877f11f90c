#include "budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CAPACITY_PART 4 /* of the limit; the rest is the refill of a window */
/* From the moment that a call pays to GitHub: BUDGET_SEARCH_PAYS_MS, BUDGET_TOKEN_WAIT_MS, and a
 * second for the way. */
#define ON_THE_WAY_US 4000000
#define OVER_PERCENT  25 /* left alone in addition for each share that is used up */

static const struct {
    const char *unit, *window;
    int64_t window_us;
    int64_t most; /* that one call costs; a search takes a full bucket where that is less */
} buckets[BUDGET_BUCKETS] = {
    [BUDGET_REQUESTS_HOUR] = { "requests", "an hour", 3600000000, 1 },
    [BUDGET_POINTS_MINUTE] = { "points", "a minute", 60000000, 5 },
    [BUDGET_CONTENT_MINUTE] = { "contents", "a minute", 60000000, 1 },
    [BUDGET_CONTENT_HOUR] = { "contents", "an hour", 3600000000, 1 },
};
static const int leaves_percent[BUDGET_CLASSES] = {
    [BUDGET_AGGREGATE] = 0,
    [BUDGET_L4] = 10,
    [BUDGET_URGENT] = 25,
    [BUDGET_REST] = 50,
};
/* Of the content. */
static const int share_part[BUDGET_SHARES] = {
    [BUDGET_SHARE_DOWNSTREAM] = 4, [BUDGET_SHARE_PR] = 8
};
const char *const budget_bucket_names[BUDGET_BUCKETS] = {
    [BUDGET_REQUESTS_HOUR] = "requests_hour",
    [BUDGET_POINTS_MINUTE] = "points_minute",
    [BUDGET_CONTENT_MINUTE] = "content_minute",
    [BUDGET_CONTENT_HOUR] = "content_hour",
};
const char *const budget_class_names[BUDGET_CLASSES] = {
    [BUDGET_AGGREGATE] = "aggregate",
    [BUDGET_L4] = "l4",
    [BUDGET_URGENT] = "urgent",
    [BUDGET_REST] = "rest",
};
static const struct {
    const char *name, *method, *end; /* end of the path; NULL: any */
} calls[BUDGET_CALLS] = {
    [BUDGET_DISPATCH] = { "dispatch", "POST", "/dispatches" },
    [BUDGET_CHECK_RUN] = { "check_run", "POST", "/check-runs" },
    [BUDGET_COMMENT] = { "comment", "POST", "/comments" },
    [BUDGET_WRITE] = { NULL, NULL, NULL },
    [BUDGET_READ] = { NULL, "GET", NULL },
    [BUDGET_SEARCH] = { NULL, NULL, NULL },
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
    rules->content[BUDGET_SEARCH] = rules->content[BUDGET_CHECK_RUN];
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

struct budget_rules budget_rules_alone(const struct budget_rules *rules)
{
    struct budget_rules alone = *rules;
    for (int b = 0; b < BUDGET_BUCKETS; b++)
        if (alone.limit[b] > 0)
            alone.limit[b] = alone.limit[b] > alone.replicas ? alone.limit[b] / alone.replicas : 1;
    return alone;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t capacity(const struct budget_rules *rules, int b)
{
    int64_t tokens = rules->limit[b] / CAPACITY_PART;
    return tokens > buckets[b].most ? tokens : buckets[b].most;
}

/* What one token takes to come. */
static int64_t token_us(const struct budget_rules *rules, int b)
{
    int64_t refill = rules->limit[b] - capacity(rules, b);
    if (refill < 1)
        refill = 1;
    return (buckets[b].window_us + ON_THE_WAY_US + refill - 1) / refill;
}

static int64_t room(const struct budget_rules *rules, int b, int leaves)
{
    return capacity(rules, b) * (100 - leaves) / 100;
}

void budget_price(const struct budget_rules *rules, enum budget_call call, enum budget_class class,
                  int64_t seen_left, int64_t reset_us, struct budget_ask *ret)
{
    int content = rules->content[call];
    const int cost[BUDGET_BUCKETS] = {
        [BUDGET_REQUESTS_HOUR] = call == BUDGET_SEARCH ? 2 : 1,
        [BUDGET_POINTS_MINUTE] = call == BUDGET_READ     ? 1
                                 : call == BUDGET_SEARCH ? 6
                                                         : 5,
        [BUDGET_CONTENT_MINUTE] = content,
        [BUDGET_CONTENT_HOUR] = content,
    };
    *ret = (struct budget_ask){ 0 };
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        if (!rules->limit[b])
            continue;
        int64_t us = token_us(rules, b);
        int leaves = leaves_percent[class];
        ret->of[b].cost_us = cost[b] * us;
        ret->of[b].room_us = room(rules, b, leaves) * us;
        ret->of[b].over_us = ret->of[b].room_us - room(rules, b, leaves + OVER_PERCENT) * us;
        ret->of[b].full_us = capacity(rules, b) * us;
    }
    int b = rules->limit[BUDGET_CONTENT_HOUR] ? BUDGET_CONTENT_HOUR : BUDGET_CONTENT_MINUTE;
    for (int s = 0; s < BUDGET_SHARES; s++)
        ret->share_cost_us[s] = ret->of[b].cost_us * share_part[s];
    ret->share_room_us = ret->of[b].full_us; /* a part of the tokens, each a multiple of the time */
    b = BUDGET_REQUESTS_HOUR;
    if (rules->limit[b] && seen_left >= 0)
        ret->lower_us = least((capacity(rules, b) - seen_left) * token_us(rules, b), reset_us);
}

int64_t budget_left(const struct budget_rules *rules, enum budget_bucket bucket,
                    enum budget_class class, int64_t used_us)
{
    if (!rules->limit[bucket])
        return -1;
    int64_t us = token_us(rules, bucket);
    int64_t left_us = room(rules, bucket, leaves_percent[class]) * us - (used_us > 0 ? used_us : 0);
    return left_us > 0 ? left_us / us : 0;
}

int64_t budget_refill_us(const struct budget_rules *rules, enum budget_bucket bucket,
                         enum budget_class class, int64_t used_us)
{
    if (!rules->limit[bucket])
        return 0;
    int64_t us = token_us(rules, bucket);
    int64_t short_us = used_us + us - room(rules, bucket, leaves_percent[class]) * us;
    return short_us > 0 ? short_us : 0;
}

void budget_describe(const struct budget_rules *rules, enum budget_bucket bucket, bool alone,
                     char *to, size_t size)
{
    snprintf(to, size, "%" PRId64 " %s %s%s", rules->limit[bucket], buckets[bucket].unit,
             buckets[bucket].window, alone ? " without Redis" : "");
}

/* budget_shared.lua does the same. */
void budget_take(struct budget_state *state, const struct budget_ask *ask, int64_t now_us,
                 struct budget_answer *ret)
{
    *ret = (struct budget_answer){ 0 };
    if (ask->limited_us > 0)
        state->limited_us = most(state->limited_us, now_us + ask->limited_us);
    if (state->limited_us > now_us) {
        ret->wait_us = state->limited_us - now_us;
        ret->limited = true;
    }
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t cost_us = ask->of[b].cost_us;
        ret->used_us[b] = most(0, state->full_us[b] - now_us);
        if (!cost_us)
            continue;
        /* No more than the capacity: the clock may have been set back. */
        int64_t used_us = least(ret->used_us[b], ask->of[b].full_us);
        if (b == BUDGET_REQUESTS_HOUR)
            used_us = most(used_us, ask->lower_us);
        ret->used_us[b] = used_us;
        int64_t wait_us = used_us + cost_us - most(ask->of[b].room_us, cost_us);
        if (wait_us > ret->wait_us) {
            ret->wait_us = wait_us;
            ret->bucket = (enum budget_bucket)b;
            ret->limited = false;
        }
    }
    for (int b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t cost_us = ask->of[b].cost_us;
        if (!ret->wait_us)
            ret->used_us[b] += cost_us;
        if (cost_us)
            state->full_us[b] = now_us + ret->used_us[b];
    }
}

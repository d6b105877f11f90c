#include "budget_parts.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../base/mem.h"
#include "../model/limits.h"

struct part {
    UT_hash_handle hh;
    char account[REPO_MAX + 1];
    struct budget_windows own;                    /* all that this process took */
    struct budget_windows untold;                 /* of it, what the store does not know of */
    int64_t left[BUDGET_CLASSES][BUDGET_BUCKETS]; /* when it was asked last */
    int64_t asked_ms[BUDGET_CLASSES];             /* 0: never */
};

struct github_budget *github_budget_new(const struct budget_rules *rules)
{
    struct github_budget *b = mem_alloc(1, sizeof(*b));
    b->rules = *rules;
    pthread_mutex_init(&b->lock, NULL);
    return b;
}

void github_budget_free(struct github_budget *b)
{
    struct part *part, *next;
    if (!b)
        return;
    HASH_ITER(hh, b->parts, part, next)
    {
        HASH_DEL(b->parts, part);
        free(part);
    }
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Locked. */
static struct part *part_of(struct github_budget *b, const char *account)
{
    struct part *part;
    HASH_FIND_STR(b->parts, account, part);
    if (part)
        return part;
    part = mem_alloc(1, sizeof(*part));
    memcpy(part->account, account, strlen(account) + 1);
    HASH_ADD_STR(b->parts, account, part);
    return part;
}

void budget_untold_take(struct github_budget *b, const char *account, int64_t now_ms,
                        struct budget_ask *ask, struct budget_windows *taken)
{
    pthread_mutex_lock(&b->lock);
    struct part *part = part_of(b, account);
    for (int i = 0; i < BUDGET_BUCKETS; i++)
        ask->untold[i] =
            budget_windows_taken(&part->untold, &b->rules, (enum budget_bucket)i, now_ms);
    *taken = part->untold;
    part->untold = (struct budget_windows){ 0 };
    pthread_mutex_unlock(&b->lock);
}

/* The store did not hear of it after all. What another thread has put there since is added. */
static void untold_put_back(struct github_budget *b, struct part *part, int64_t now_ms,
                            const struct budget_windows *taken)
{
    struct budget_windows since = part->untold;
    part->untold = *taken;
    for (int i = 0; i < BUDGET_BUCKETS; i++) {
        struct budget_cost cost = { { 0 } };
        cost.of[i] = (int)budget_windows_taken(&since, &b->rules, (enum budget_bucket)i, now_ms);
        budget_windows_add(&part->untold, &b->rules, &cost, 1, now_ms);
    }
}

static void note_left(struct part *part, const struct budget_ask *ask,
                      const struct budget_grant *grant, int64_t now_ms)
{
    memcpy(part->left[ask->low], grant->left, sizeof(grant->left));
    part->asked_ms[ask->low] = now_ms;
}

void budget_took(struct github_budget *b, const char *account, int64_t now_ms,
                 const struct budget_ask *ask, const struct budget_grant *grant)
{
    pthread_mutex_lock(&b->lock);
    struct part *part = part_of(b, account);
    if (grant->calls)
        budget_windows_add(&part->own, &b->rules, &ask->cost, grant->calls, now_ms);
    note_left(part, ask, grant, now_ms);
    pthread_mutex_unlock(&b->lock);
}

void budget_take_part(struct github_budget *b, const char *account, int64_t now_ms,
                      struct budget_ask *ask, const struct budget_windows *taken,
                      struct budget_grant *ret)
{
    pthread_mutex_lock(&b->lock);
    struct part *part = part_of(b, account);
    untold_put_back(b, part, now_ms, taken);
    ask->calls = 1; /* asking costs nothing here */
    budget_windows_ask(&part->own, &b->rules, ask, true, now_ms, ret);
    if (ret->calls)
        budget_windows_add(&part->untold, &b->rules, &ask->cost, 1, now_ms);
    note_left(part, ask, ret, now_ms);
    pthread_mutex_unlock(&b->lock);
}

/* When what was taken at 0 counts in no window any more. */
static int64_t lapses_ms(const struct budget_rules *rules, enum budget_bucket bucket)
{
    int64_t window_ms = budget_window_ms(rules, bucket);
    return window_ms + window_ms / BUDGET_SLOTS + BUDGET_LIFE_MS;
}

int64_t budget_least_left(struct github_budget *b, enum budget_class class,
                          enum budget_bucket bucket, int64_t now_ms)
{
    int64_t least = -1, full = budget_cap(&b->rules, bucket, class == BUDGET_LOW, false, 0);
    int64_t lapses = lapses_ms(&b->rules, bucket);
    if (!b->rules.limit[bucket])
        return -1;
    pthread_mutex_lock(&b->lock);
    for (const struct part *part = b->parts; part; part = part->hh.next) {
        if (!part->asked_ms[class])
            continue;
        bool lapsed = now_ms - part->asked_ms[class] >= lapses;
        int64_t left = lapsed ? full : part->left[class][bucket];
        if (least < 0 || left < least)
            least = left;
    }
    pthread_mutex_unlock(&b->lock);
    return least;
}

/* Private to budget: what this process knows of each account's budget, shared by its threads. Any
 * thread; nobody is asked while the lock is held. */
#ifndef CRCR_GITHUB_BUDGET_PARTS_H
#define CRCR_GITHUB_BUDGET_PARTS_H

#include <pthread.h>

#include "github.h"

struct github_budget {
    struct budget_rules rules; /* as they were at the start */
    pthread_mutex_t lock;      /* of parts */
    struct part *parts;
};

/* What must be told to the store goes with this ask, and to *taken; nobody else tells it meanwhile.
 */
void budget_untold_take(struct github_budget *b, const char *account, int64_t now_ms,
                        struct budget_ask *ask, struct budget_windows *taken);
/* The store gave it. */
void budget_took(struct github_budget *b, const char *account, int64_t now_ms,
                 const struct budget_ask *ask, const struct budget_grant *grant);
/* The store did not answer: *taken is untold still, and one call is taken of this process's part,
 * or refused. */
void budget_take_part(struct github_budget *b, const char *account, int64_t now_ms,
                      struct budget_ask *ask, const struct budget_windows *taken,
                      struct budget_grant *ret);
/* What is left for that class to the account that has least: as it was told last, or all of it once
 * whatever was taken before that has lapsed. -1: nobody has asked yet, or there is no limit. */
int64_t budget_least_left(struct github_budget *b, enum budget_class class,
                          enum budget_bucket bucket, int64_t now_ms);

#endif

/* Private to the gate: gate.c decides, gate_report.c says what became of it. */
#ifndef CRCR_GITHUB_GATE_PRIVATE_H
#define CRCR_GITHUB_GATE_PRIVATE_H

#include <pthread.h>

#include "../base/table.h"
#include "gate.h"

/* All times are of the monotonic clock. */
struct account {
    int in_flight;
    /* GitHub's word. */
    int64_t limited_until_ms;
    int limits_in_row;             /* that named no time */
    int64_t left, limit, reset_ms; /* x-ratelimit-*; reset_ms 0: none yet */
    bool is_news;                  /* the budget has not heard of them */
    /* The breaker. */
    int failures; /* in a row */
    int64_t opened_ms, probe_ms, asked_ms;
    bool reported_open;
    char error[256];
    /* The budget: while Redis answers, what it said last. */
    struct budget_state state;
};

/* Until then no such call is asked for. */
struct refusal {
    int64_t until_ms;
    int64_t next_ms, step_ms; /* the moment that the next one gets; and how much later one more */
    enum budget_bucket bucket;
    char what[96]; /* "900 points a minute" */
};

struct gate {
    struct budget_rules rules;
    pthread_mutex_t lock;  /* of what follows; not held while Redis is asked */
    struct table accounts; /* of struct account by owner in lower case; "*": the App's budget */
    struct table refusals; /* of struct refusal, oldest first */
    int64_t news_ms;       /* when gate_news looks next */
    int64_t waits[BUDGET_CLASSES][BUDGET_BUCKETS]; /* since they were reported */
};

/* True while the breaker is open. */
static inline bool gate_is_open(const struct account *a)
{
    return a->failures >= GATE_FAILURES;
}
/* Locked. The limit of requests is the lower of ours and GitHub's. alone: without Redis. */
struct budget_rules gate_rules_of(const struct gate *g, const struct account *payer, bool alone);

#endif

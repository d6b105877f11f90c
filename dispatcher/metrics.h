/* What the dispatcher counts. The table is metrics.c; the order is the same. */
#ifndef CRCR_DISPATCHER_METRICS_H
#define CRCR_DISPATCHER_METRICS_H

#include "../common/base/metrics.h"

enum {
    M_EVENTS,            /* event, result */
    M_TASKS,             /* tier */
    M_OUTCOMES,          /* tier, outcome */
    M_LATENCY,           /* tier */
    M_CALL,              /* tier */
    M_IN_FLIGHT,         /* tier */
    M_IN_HAND,           /* tier */
    M_CLAIMS,            /* tier, verdict */
    M_MAYBE_DUPLICATE,   /* tier, reason */
    M_BREAKER_OPEN,      /* account */
    M_PARKED,            /* delay */
    M_RELEASED,          /* delay */
    M_DLQ,               /* role, class */
    M_BUDGET,            /* tier */
    M_NOT_STORED,        /* topic */
    M_LOST,              /* role, topic */
    M_ALLOWLIST_FETCHES, /* file, result */
    M_ALLOWLIST_VALID,   /* file */
    M_ALLOWLIST_FETCHED, /* file */
    M_ALLOWLIST_HELD,    /* file */
    M_ALLOWLIST_REPOS,
    M_BUDGET_LEFT,   /* class, bucket */
    M_BUDGET_WAITS,  /* class, bucket */
    M_REPO_OUTCOMES, /* repo, outcome, reason */
};

extern const struct metric_family dispatcher_metrics[];
extern const size_t dispatcher_n_metrics;
struct budget_families;
extern const struct budget_families dispatcher_budget_families;
struct worker_metrics;
extern const struct worker_metrics dispatcher_worker_metrics;

/* Counts one outcome as it goes into the dispatches topic: by tier, and by repository and reason.
 */
struct outcome;
void dispatcher_count_outcome(struct metrics *m, const struct outcome *o);
/* Why it is that outcome, as one of a few words: "http_404" of those that GitHub documents,
 * http_4xx, http_5xx, http_other; without a status no_answer, held, not_sent; "none" where the
 * outcome says it all. Written to the 16 bytes at to. PURE. */
void dispatcher_outcome_reason(const struct outcome *o, char *to);

#endif

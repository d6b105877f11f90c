/* What happens to a task, and why. Two decisions, each a table read top to bottom
 * (dispatch_decide.c): before the call, and after GitHub's answer. PURE. */
#ifndef CRCR_DISPATCHER_DISPATCH_DECIDE_H
#define CRCR_DISPATCHER_DISPATCH_DECIDE_H

#include "../common/github/github.h"
#include "../common/model/allowlist.h"
#include "../common/view/claims.h"

/* Waits up to this long stay in hand and hold their lane; longer ones are parked. */
#define DISPATCH_IN_HAND_MS      10000
/* Back-off for a slow or broken downstream: the time it has been so, within these, plus up to 50 %
 * jitter. Each return writes three records: hours of failure cost few, and after a minute of it the
 * tasks are back within another. */
#define DISPATCH_BACK_OFF_MIN_MS 30000
#define DISPATCH_BACK_OFF_MAX_MS 300000

enum dispatch_next {
    DISPATCH_CLAIM, /* no known fact forbids the call: take its claim */
    DISPATCH_CALL,  /* marked, if mark says so */
    DISPATCH_HOLD,  /* waits in its lane until until_ms; no outcome */
    DISPATCH_WAIT,  /* an outcome; then again at until_ms, in hand */
    DISPATCH_PARK,  /* an outcome; then again at until_ms, by way of a delay topic */
    DISPATCH_END,   /* an outcome, and nothing more: it was called, or needs no call */
    DISPATCH_DEAD,  /* an outcome; into the DLQ as dlq_class */
};

struct dispatch_decision {
    enum dispatch_next next;
    enum outcome_kind outcome;
    enum task_mark mark;   /* why the call, or the next one, may be the second */
    int64_t until_ms;      /* monotonic */
    int attempt;           /* the next one's number */
    const char *reason;    /* for people, or NULL; as long as what was decided from */
    const char *dlq_class; /* "refused" or "exhausted" */
    unsigned because;      /* the fact that decided; what waits for the same is parked together */
};

/* What is known before a call. A fact is true or not known to be. */
enum dispatch_fact {
    FACT_UNWANTED = 1 << 0,         /* the reason is in unwanted */
    FACT_SLOW = 1 << 1,             /* all its calls are in flight, and none has ended for 5 s */
    FACT_CLAIM_ASKED = 1 << 2,      /* claim says what Redis answered */
    FACT_CLAIM_OLD = 1 << 3,        /* half of its lease is over: the process was paused */
    FACT_PARTITION_UNSURE = 1 << 4, /* it may have another owner: worker_may_act */
    /* After the call. */
    FACT_BREAKER_OPEN = 1 << 5, /* and this is not its probe */
    FACT_LIMITED = 1 << 6,      /* the gate holds it for another reason */
    FACT_FAILED = 1 << 7,       /* no effect, or unknown */
};
struct dispatch_facts {
    unsigned known;       /* enum dispatch_fact, joined */
    const char *unwanted; /* why it is no longer wanted */
    enum claim_verdict claim;
    bool is_expand; /* only reads from GitHub: it is never marked */
    int attempt;
    int64_t now_ms;        /* monotonic, as all moments here */
    int64_t busy_until_ms; /* CLAIM_BUSY: when that claim expires */
    int64_t since_ms;      /* FACT_SLOW: since when */
    double jitter;         /* 0…1 */
};

/* Why the task is no longer wanted, by its age and the allowlist in force (NULL: none yet); NULL:
 * it is wanted. now_ms is the wall clock. */
const char *dispatch_unwanted(const struct task *task, const struct allowlist *list, int64_t now_ms,
                              int64_t max_age_ms);
struct dispatch_decision dispatch_decide(const struct dispatch_facts *facts);

/* What follows from GitHub's answer to that attempt, or from a call that could not be made. jitter:
 * 0…1, spreads what failed together. Never retries before the moment that GitHub named. */
struct dispatch_decision dispatch_decide_answer(const struct github_answer *answer, int attempt,
                                                int64_t now_ms, double jitter);

#endif

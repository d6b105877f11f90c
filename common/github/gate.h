/* One gate: may this call go now? Callers ask it for one account: the owner of a repository, who
 * has one installation of the App. The answer is "now", or "at this time, for this reason":
 *
 *   in_flight    GitHub answers at most 100 calls at once; a process takes its share, of
 *                which the lowest class leaves a quarter to those above it
 *   rate_limit   GitHub said how long; if it did not: 1 min, doubled up to 16
 *   budget       ours (model/budget.h), shared by all replicas through Redis
 *   breaker      5 calls of the account failed in a row: one probe every 10 s
 *   token        its installation or token was not available lately (app_token.h)
 *
 *               5 failures in a row
 *   closed ───────────────────────────▶ open ──┐ every 10 s one call may go: the probe
 *      ▲                                 │ ▲   │
 *      └──────────── an answer ──────────┘ └───┘ a failure
 *
 * Failures are: 5xx, a timeout, a reset, a call that could not be sent, and 401. Everything else is
 * an answer, including refusals and limits. Waiting spends no attempt.
 *
 * A process has one gate, for all its threads. Redis counts the budget for all replicas. The gate
 * remembers a refusal until it ends, so that a refused caller does not ask Redis again and again.
 */
#ifndef CRCR_GITHUB_GATE_H
#define CRCR_GITHUB_GATE_H

#include "../base/metrics.h"
#include "../model/limits.h"
#include "../view/budget_shared.h"

#define GATE_FAILURES 5
#define GATE_PROBE_MS 10000
/* After 15 min without a call the account is gone or has no events (a parked task is back within
 * 7.5 min). Its breaker closes, so that crcr_breaker_open does not stay 1. */
#define GATE_IDLE_MS  900000

enum gate_reason {
    GATE_NOW,
    GATE_IN_FLIGHT,
    GATE_RATE_LIMIT,
    GATE_BUDGET,
    GATE_BREAKER,
    GATE_TOKEN
};

struct github_answer;
struct redis;

/* Any thread. */
struct gate;
/* rules: our budget; NULL: no budget. */
struct gate *gate_new(const struct budget_rules *rules);
/* Free all users of the gate first. NULL is fine. */
void gate_free(struct gate *gate);

/* One thread's use of the gate; a value. */
struct gate_user {
    struct gate *gate;       /* borrowed */
    struct redis *redis;     /* borrowed, this thread's; NULL: this process counts alone */
    enum budget_class class; /* the highest class that its calls may have */
    int64_t report_us;       /* next report of the remaining budget; monotonic */
    char reason[512];        /* of the last refusal */
};

/* A call to make. */
struct gate_call {
    struct str repo;       /* its owner is the account */
    struct str downstream; /* pays from its share of the content; absent: from the repo's */
    int64_t pr;            /* likewise; 0: none */
    enum budget_call kind;
    enum budget_class class;
    bool inside; /* it already counts as in flight */
    bool paid;   /* its cost is already paid */
};

/* May it go now? True: the call counts as in flight until gate_leave, and its cost is paid. While
 * the breaker is open, this call is the probe. False: *ret is the call's answer (sent_ms 0); its
 * reason is borrowed until the user's next refusal. Calls that a bucket refuses get different
 * times: if all came at once, all but one would be refused again. */
bool gate_enter(struct gate_user *u, const struct gate_call *call,
                struct github_answer *ret) MUST_CHECK;
/* True: a call of the repo's account counts as in flight from now on, as inside. False: as many are
 * as may be; one is done within 100 ms, mostly. */
bool gate_reserve(struct gate_user *u, struct str repo) MUST_CHECK;
/* The call has ended, or was not made. */
void gate_leave(struct gate_user *u, struct str repo);
/* True if the gate already knows that such a call must wait: *ret is the answer, with the earliest
 * time at which one may go. Spends nothing and does not ask Redis. */
bool gate_holds(struct gate_user *u, const struct gate_call *call, struct github_answer *ret);

/* The cost of a dispatch, for a caller that takes it from the shared budget in one step with
 * something else (view/claims.h): gate_bill, then that step, then gate_paid. */
struct gate_bill {
    struct budget_bill shared; /* account absent: take nothing in that step */
    enum budget_call kind;
    enum budget_class class;
};
/* As gate_enter, for a call that is inside, but returns the cost and does not take it. While the
 * breaker is open the bill is empty: the call may be the probe, and then pays through gate_enter.
 * The bill borrows from the call. */
bool gate_bill(struct gate_user *u, const struct gate_call *call, struct gate_bill *ret,
               struct github_answer *refused) MUST_CHECK;
/* Takes the shared budget's answer to a bill with an account. False: *refused is the call's answer;
 * the gate remembers it. */
bool gate_paid(struct gate_user *u, const struct gate_bill *bill,
               const struct budget_answer *answer, struct github_answer *refused) MUST_CHECK;

/* Takes GitHub's answer to a call of the repo's account, or for its token. A rate limit holds all
 * calls of the account; if GitHub did not say how long, this sets wait_until_ms. The next call
 * sends x-ratelimit-remaining to Redis; a rate limit or 0 remaining stops all replicas at once
 * (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api,
 * "Handle rate limit errors appropriately"). These numbers are one installation's, so a budget for
 * the entire App ignores them. repo absent: the App's own call; no other call waits for it. */
void gate_answered(struct gate_user *u, struct str repo, struct github_answer *answer);
/* When the breaker of the repo's account allows its next probe, monotonic; 0: it is closed. */
int64_t gate_probe_ms(struct gate *gate, struct str repo);

/* A breaker that opened or closed. */
struct gate_news {
    char account[REPO_MAX + 1];
    char error[256]; /* opened: the last failure's */
    bool open;
    bool forgotten; /* closed after GATE_IDLE_MS without a call */
};
/* The next change that was not reported yet; looks once a second. False: there is none. */
bool gate_news(struct gate *gate, struct gate_news *ret);

/* Metric families of a program, by index: labels (tier), (class, bucket), (class, bucket). */
struct budget_families {
    size_t github; /* gauge: GitHub's remaining calls, of the account with the fewest */
    size_t left;   /* gauge: our remaining budget, of the account with the least */
    size_t waits;  /* counter: calls held back by our budget */
};
/* Adds the counts since the last report; sets the gauges once a second. who is the label of
 * GitHub's number. */
void gate_report(struct gate_user *u, struct metrics *m, const struct budget_families *to,
                 struct str who);

#endif

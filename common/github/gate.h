/* One gate: may this call go now? Asked for one account: the owner of a repository, who has one
 * installation of the App. The answer is now, or at a moment, and because of what:
 *
 *   in_flight    GitHub answers at most 100 calls at once; a process takes its part of them, of
 *                which the lowest class leaves a quarter to those above it
 *   rate_limit   GitHub said until when; where it did not: 1 min, doubled up to 16
 *   budget       ours (model/budget.h), shared by all replicas through Redis
 *   breaker      5 calls of the account in a row had no answer: one probe every 10 s
 *   token        its installation or token could not be had a moment ago (app_token.h)
 *
 *               5 failures in a row
 *   closed ───────────────────────────▶ open ──┐ every 10 s one call may go: the probe
 *      ▲                                 │ ▲   │
 *      └──────────── an answer ──────────┘ └───┘ a failure
 *
 * A failure is 5xx, a time-out, a reset, what could not be sent, a 401. Whatever else GitHub says
 * is an answer, a refusal and a limit, too. Waiting spends no attempt.
 *
 * A process has one gate, for all its threads. Redis counts the budget for all replicas; a refusal
 * is remembered here until its moment, so that who is refused does not ask again and again. */
#ifndef CRCR_GITHUB_GATE_H
#define CRCR_GITHUB_GATE_H

#include "../base/metrics.h"
#include "../model/limits.h"
#include "../view/budget_shared.h"

#define GATE_FAILURES 5
#define GATE_PROBE_MS 10000
/* Nobody asked for 15 min (a parked task is back within 7.5): the account is gone or has no events.
 * Its breaker is closed, so that crcr_breaker_open does not stay 1. */
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
/* rules: of our budget; NULL: there is none. */
struct gate *gate_new(const struct budget_rules *rules);
/* After all who ask it. NULL is fine. */
void gate_free(struct gate *gate);

/* One thread's way through it; a value. */
struct gate_user {
    struct gate *gate;       /* borrowed */
    struct redis *redis;     /* borrowed, of this thread; NULL: this process counts alone */
    enum budget_class class; /* no call is of a class above it */
    int64_t report_us;       /* when what is left is reported next; monotonic */
    char reason[512];        /* of the last refusal */
};

/* A call that is to go. */
struct gate_call {
    struct str repo;       /* whose account it is */
    struct str downstream; /* whose share of the content it takes; absent: the repo's */
    int64_t pr;            /* likewise; 0: of none */
    enum budget_call kind;
    enum budget_class class;
    bool inside; /* it is counted in flight already */
    bool paid;   /* its cost was taken already */
};

/* May it go now? True: it is counted in flight until gate_leave, its cost is taken, and where the
 * breaker is open it is the probe. False: *ret is the answer that it gets (sent_ms 0); its reason
 * is borrowed until the user's next refusal. Each that a bucket refuses gets a moment of its own:
 * if all came at once, all but one would be refused again. */
bool gate_enter(struct gate_user *u, const struct gate_call *call,
                struct github_answer *ret) MUST_CHECK;
/* It has ended, or did not begin. */
void gate_leave(struct gate_user *u, struct str repo);
/* True while such a call is known not to go: *ret is the answer, with the first moment at which one
 * may. Takes nothing, asks nobody. */
bool gate_holds(struct gate_user *u, const struct gate_call *call, struct github_answer *ret);

/* What a dispatch is to pay, for who takes it out of the shared budget in one step with something
 * else (view/claims.h): gate_bill, then that step, then gate_paid. */
struct gate_bill {
    struct budget_bill shared; /* account absent: nothing is to be taken in that step */
    enum budget_call kind;
    enum budget_class class;
};
/* As gate_enter, but its cost is only named. Where the breaker is open it is not even named: the
 * call is perhaps the probe, and pays itself. The bill borrows of the call. */
bool gate_bill(struct gate_user *u, const struct gate_call *call, struct gate_bill *ret,
               struct github_answer *refused) MUST_CHECK;
/* What the shared budget answered to a bill that has an account. False: *refused is the call's
 * answer, and remembered. */
bool gate_paid(struct gate_user *u, const struct gate_bill *bill,
               const struct budget_answer *answer, struct github_answer *refused) MUST_CHECK;

/* What GitHub answered to a call of the repo's account, or for its token. A limit holds all calls
 * of the account, and where GitHub did not say until when, wait_until_ms is filled here.
 * x-ratelimit-remaining goes with the next call; a limit, and 0 remaining, stop all replicas at
 * once (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api,
 * "Handle rate limit errors appropriately"). With a budget of the whole App these numbers say
 * nothing of it: they are of one installation. repo absent: the App's own call, which no other
 * waits for. */
void gate_answered(struct gate_user *u, struct str repo, struct github_answer *answer);
/* When the breaker of the repo's account gives its next probe away, monotonic; 0: it is closed. */
int64_t gate_probe_ms(struct gate *gate, struct str repo);

/* A breaker that opened or closed. */
struct gate_news {
    char account[REPO_MAX + 1];
    char error[256]; /* opened: of the last failure */
    bool open;
    bool forgotten; /* closed, for nobody has asked */
};
/* The next one that is not reported yet; looked for once a second. False: there is none. */
bool gate_news(struct gate *gate, struct gate_news *ret);

/* Metric families of a program, by index: labels (tier), (class, bucket), (class, bucket). */
struct budget_families {
    size_t github; /* gauge: what GitHub says is left, to the account with least */
    size_t left;   /* gauge: of ours, to the account with least */
    size_t waits;  /* counter: calls held back by our budget */
};
/* Adds what happened since the last time; what is left, once a second. who is the label of GitHub's
 * number. */
void gate_report(struct gate_user *u, struct metrics *m, const struct budget_families *to,
                 struct str who);

#endif

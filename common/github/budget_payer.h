/* Private to common/github: each call takes what it costs of GitHub's limits (model/budget.h has
 * the rules) before it is sent. Redis is asked each time (view/budget_shared.h), for a dispatch in
 * one step with its claim; a refusal is remembered by the process until its moment, so that who is
 * refused does not ask again and again. */
#ifndef CRCR_GITHUB_BUDGET_PAYER_H
#define CRCR_GITHUB_BUDGET_PAYER_H

#include "github.h"

/* What one thread's calls pay with; a value. */
struct budget_payer {
    struct github_budget *budget; /* borrowed; NULL: no limit of ours */
    struct redis *redis;          /* borrowed, of this thread; NULL: this process counts alone */
    enum budget_class class;      /* no call is of a class above it */
    int64_t report_us;            /* when what is left is reported next; monotonic */
    char reason[512];             /* of the last refusal */
};

/* Takes what the call costs. False: *ret is the answer that it gets (limited, sent_ms 0); its
 * reason is borrowed until the next refusal. Each that a bucket refuses gets a moment of its own:
 * if all came at once, all but one would be refused again. */
bool budget_pay(struct budget_payer *p, const struct github_request *request,
                struct github_answer *ret) MUST_CHECK;
/* As github_bill and github_bill_answered. */
bool budget_bill(struct budget_payer *p, struct str repo, struct github_bill *ret,
                 struct github_answer *refused);
bool budget_bill_answered(struct budget_payer *p, const struct github_bill *bill,
                          const struct budget_answer *answer, struct github_answer *refused);
/* As github_held. */
bool budget_held(struct budget_payer *p, struct str repo, struct str downstream, int64_t pr,
                 enum budget_call call, enum budget_class class, struct github_answer *ret);
/* What an answer for the repo's installation says: x-ratelimit-remaining goes with the next call;
 * a limit, and 0 remaining, stop all replicas at once
 * (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api,
 * "Handle rate limit errors appropriately"). With a budget of the whole App nothing: one
 * installation's numbers say nothing of it. */
void budget_saw(struct budget_payer *p, struct str repo, const struct github_answer *answer);
/* Adds to the families waits and left, as github_report_budget. */
void budget_report(struct budget_payer *p, struct metrics *m, const struct budget_families *to);

#endif

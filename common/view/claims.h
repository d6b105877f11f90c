/* Claims: one dispatch per (delivery, downstream, kind, run). A claim is written before the call as
 * sending(until, owner), and becomes done(call) after it. It is also the dispatch record that a
 * callback needs, even one that comes at once. Repository names in keys are lower-case. */
#ifndef CRCR_VIEW_CLAIMS_H
#define CRCR_VIEW_CLAIMS_H

#include "../io/redis.h"
#include "../model/task.h"
#include "budget_shared.h"

#define CLAIM_SENDING_MS 60000
/* A call is sent within half of that time, or else claimed again: the process may have been paused.
 */
#define CLAIM_HALF_MS    (CLAIM_SENDING_MS / 2)

enum claim_verdict {
    /* The first three, up to CLAIM_EXPIRED: the claim is ours. */
    CLAIM_TAKEN,      /* ours: call */
    CLAIM_FORGOTTEN,  /* ours, but Redis was emptied since the event was received: an earlier claim
                         may be lost */
    CLAIM_EXPIRED,    /* ours, but how an earlier owner's call ended is unknown: maybe_duplicate */
    CLAIM_BUSY,       /* another owner is sending: hold the lane for wait_ms */
    CLAIM_DONE,       /* it was sent: a duplicate */
    CLAIM_SUPERSEDED, /* a later seq of the lane was sent, or waits */
    CLAIM_UNPAID,     /* no claim was taken: the budget refuses the call */
    CLAIM_NONE,       /* Redis did not answer; claim_collect gives an error */
};
/* The name in claim.lua and in metrics. */
const char *claim_verdict_name(enum claim_verdict verdict);
/* What a claim keeps of its call. 0: not known. */
struct claim_call {
    int64_t at_ms; /* wall clock: when it was sent */
    int http_status, attempt;
    enum task_mark maybe_duplicate;
};
struct claim_answer {
    enum claim_verdict verdict;
    int64_t wait_ms;             /* BUSY: until that claim expires */
    struct claim_call call;      /* DONE */
    struct budget_answer budget; /* of the bill; UNPAID, and when the claim was taken */
};

/* A replay --again has its own claims: what was sent before it does not count, but each task is
 * still sent once per replay.
 *
 * Takes a claim, in one Lua step. Queue many, then collect in the same order, so that a loop can
 * pipeline them. owner: unique to one attempt to send; the same owner may claim again. (A process
 * may hold a task twice when its partition was revoked and assigned again.) The seq of a task that
 * can be superseded is compared and recorded. overtaken: a later event of the lane waits already.
 * Such a task is then superseded, unless an earlier call of it may have had an effect: then it is
 * repeated, because a run that it may have started still reports under its delivery.
 * dispatched_ms: the time of the call, by the caller's wall clock; the claim itself expires by
 * Redis's clock. bill: what the call costs, paid in the same step if the claim is taken; NULL:
 * nothing. */
enum err claim_queue(struct redis *r, const struct task *task, const char *owner,
                     int64_t dispatched_ms, bool overtaken, const struct budget_bill *bill,
                     struct why *why) MUST_CHECK;
enum err claim_collect(struct redis *r, struct claim_answer *ret, struct why *why) MUST_CHECK;
/* Ends a claim; queued and collected in the same way. sending → done(call) if the outcome is
 * dispatched or skipped, else → unknown (the next to claim gets CLAIM_EXPIRED). Also writes a claim
 * that was not taken because Redis was unavailable: then the seq becomes the lane's last, too,
 * unless a later one is. A claim that is done stays done. */
enum err claim_finish_queue(struct redis *r, const struct task *task, const char *owner,
                            const struct outcome *outcome, struct why *why) MUST_CHECK;
/* Gives a claim back: no call was made, or GitHub certainly did not act on it. */
enum err claim_release_queue(struct redis *r, const struct task *task, const char *owner,
                             struct why *why) MUST_CHECK;
/* ERR_REFUSE: another owner has taken the claim since. */
enum err claim_end_collect(struct redis *r, struct why *why) MUST_CHECK;

/* Restores a claim and its lane's seq from an outcome in the topic dispatches, if Redis lost them
 * or was unavailable at the call. An outcome that says "sent" gives done, one that says "perhaps
 * sent" gives unknown; others restore nothing. A claim that is done stays. One that is sending
 * stays until it expires, since its owner may still end it, unless the outcome is of the same call
 * (the same time). age_ms: the outcome's; *queued: call claim_end_collect. */
enum err claim_restore_queue(struct redis *r, const struct outcome *outcome, int64_t age_ms,
                             bool *queued, struct why *why) MUST_CHECK;

/* For ingest: the dispatch of a delivery to a repo. */
struct dispatch_record {
    int64_t pr;
    char head_sha[SHA_MAX + 1];
    int64_t dispatched_ms;
};
/* OK: *found says whether there is one. */
enum err dispatch_record_get(struct redis *r, struct str delivery, struct str repo, bool *found,
                             struct dispatch_record *ret, struct why *why) MUST_CHECK;

#endif

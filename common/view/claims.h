/* Claims: one dispatch per (delivery, downstream, kind, run). States sending(until, owner) →
 * done(call), written before the call; also the dispatch record that a fast callback needs.
 * Repository names in keys are lower-case. */
#ifndef CRCR_VIEW_CLAIMS_H
#define CRCR_VIEW_CLAIMS_H

#include "../io/redis.h"
#include "../model/task.h"
#include "budget_shared.h"

#define CLAIM_SENDING_MS 60000
/* A call is sent within half of that, or claimed again: the process may have been paused. */
#define CLAIM_HALF_MS    (CLAIM_SENDING_MS / 2)

enum claim_verdict {
    /* The first three, up to CLAIM_EXPIRED: the claim is ours. */
    CLAIM_TAKEN,      /* ours: call */
    CLAIM_FORGOTTEN,  /* ours, but Redis was emptied since the event was received: an earlier call
                         may have been forgotten */
    CLAIM_EXPIRED,    /* ours, but an earlier owner never said how its call ended: call with
                         maybe_duplicate */
    CLAIM_BUSY,       /* another owner is sending: hold the lane for wait_ms */
    CLAIM_DONE,       /* it was sent: a duplicate */
    CLAIM_SUPERSEDED, /* a later seq of the lane was sent already, or waits */
    CLAIM_UNPAID,     /* no claim was taken: the budget refuses the call */
    CLAIM_NONE,       /* Redis did not answer; claim_collect gives an error */
};
/* As claim.lua and the metrics write it. */
const char *claim_verdict_name(enum claim_verdict verdict);
/* What a claim remembers of a call. 0: that is not known. */
struct claim_call {
    int64_t at_ms; /* wall clock: the moment it was sent */
    int http_status, attempt;
    enum task_mark maybe_duplicate;
};
struct claim_answer {
    enum claim_verdict verdict;
    int64_t wait_ms;             /* BUSY: until it runs out */
    struct claim_call call;      /* DONE */
    struct budget_answer budget; /* of the bill; UNPAID, and when the claim was taken */
};

/* A task of an event that was replayed --again has a claim of its own, so that what was sent before
 * does not count; within one replay it is sent once all the same.
 *
 * owner: unique to one attempt to send (a process may hold a task twice when its partition went
 * away and came back); the same owner may claim again. One Lua step each. queue/collect so that a
 * loop can pipeline many; collect in the order of queueing. supersede: compare and record seq
 * (pull_request dispatches only). overtaken: a later event of its lane makes it needless, and waits
 * already; with supersede it is superseded where it surely had no effect: a repeat goes out, for
 * what it may have started at the downstream goes on under its name. dispatched_ms: the moment of
 * the call, by the caller's wall clock; what a claim's time is measured with is Redis's. bill: what
 * the call costs, taken in the same step when the claim is; NULL: nothing. */
enum err claim_queue(struct redis *r, const struct task *task, const char *owner,
                     int64_t dispatched_ms, bool supersede, bool overtaken,
                     const struct budget_bill *bill, struct why *why) MUST_CHECK;
enum err claim_collect(struct redis *r, struct claim_answer *ret, struct why *why) MUST_CHECK;
/* The end of a claim, queued and collected in the same way. finish: sending → done(call) when the
 * outcome is dispatched or skipped, else → unknown (whoever claims next gets CLAIM_EXPIRED). Also
 * where no claim was taken: Redis was unavailable then. What is done stays done. supersede, as for
 * claim_queue: the seq becomes the lane's last in the same step, unless a later one is. */
enum err claim_finish_queue(struct redis *r, const struct task *task, const char *owner,
                            const struct outcome *outcome, bool supersede,
                            struct why *why) MUST_CHECK;
/* Gives a claim back: no call of this task was made, or it was surely without effect at GitHub. */
enum err claim_release_queue(struct redis *r, const struct task *task, const char *owner,
                             struct why *why) MUST_CHECK;
/* ERR_REFUSE when another owner has taken it since. */
enum err claim_end_collect(struct redis *r, struct why *why) MUST_CHECK;

/* What an outcome in the topic dispatches says of a claim and of its lane, for a Redis that has
 * lost both, or was unavailable when it was called: sent → done, perhaps sent → unknown; another
 * says nothing. What is there stays: done, and sending until it has run out, for its owner may
 * store its end; unless the outcome is of that very call (its moment).
 * age_ms: of the outcome; *queued: claim_end_collect is to follow. */
enum err claim_restore_queue(struct redis *r, const struct outcome *outcome, int64_t age_ms,
                             bool *queued, struct why *why) MUST_CHECK;

/* For ingest: the record of the dispatch of a delivery to a repo. */
struct dispatch_record {
    int64_t pr;
    char head_sha[SHA_MAX + 1];
    char event_type[16];
    int level;
    int64_t dispatched_ms;
};
/* OK with *found: whether there is one. */
enum err dispatch_record_get(struct redis *r, struct str delivery, struct str repo, bool *found,
                             struct dispatch_record *ret, struct why *why) MUST_CHECK;

#endif

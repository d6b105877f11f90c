/* What follows an answer of GitHub's. PURE.
 *
 *   attempt 1 ─10 s─▶ 2 ─1 m─▶ 3 ─10 m─▶ 4 ─1 h─▶ 5 ──▶ dlq, exhausted
 *   a limit: until GitHub said, the attempt is not spent        a refusal: dlq, refused */
#ifndef CRCR_DISPATCHER_RETRY_H
#define CRCR_DISPATCHER_RETRY_H

#include "../common/github/github.h"
#include "../common/model/task.h"
#include "../common/model/topics.h"

/* Waits up to this long stay in hand and hold their lane; longer ones are parked. */
#define RETRY_HOLD_MAX_MS 10000

enum retry_next {
    RETRY_DONE, /* nothing more to do */
    RETRY_HOLD, /* again at at_ms, in hand */
    RETRY_PARK, /* again at at_ms, by way of a delay topic */
    RETRY_DEAD, /* to the dlq as cls */
};

struct retry {
    enum retry_next next;
    int64_t at_ms;             /* monotonic clock, never before what GitHub said */
    enum topic delay;          /* PARK */
    int attempt;               /* the next one's number */
    bool maybe_duplicate;      /* the next one may be the second to arrive */
    const char *cls;           /* DEAD: "refused" or "exhausted" */
    enum outcome_kind outcome; /* of this one */
};

/* jitter: 0…1, spreads what failed together. */
struct retry retry_decide(const struct github_answer *answer, int attempt, int64_t now_ms,
                          double jitter);

#endif

/* Whether GitHub answers about check runs at all. When several commits in a row got no answer, it
 * is not about them: none spends its attempts, and one pass at a time asks whether GitHub is back.
 * PURE.
 *
 *             3 commits in a row without an answer
 *   available ────────────────────────────────────▶ unavailable ──┐ every 5 s one pass may go:
 *       ▲                                              │    ▲     │ the probe
 *       └───────────────── an answer ──────────────────┘    └─────┘ none                     */
#ifndef CRCR_REPORTER_OUTAGE_H
#define CRCR_REPORTER_OUTAGE_H

#include "../common/github/github.h"

#define OUTAGE_COMMITS  3
#define OUTAGE_PROBE_MS 5000

/* All 0: available. */
struct outage {
    unsigned last;    /* whose call was the last one that failed */
    int failed;       /* different ones in a row */
    int64_t probe_ms; /* unavailable: when the next pass may go */
};

bool outage_is(const struct outage *o);
/* True when a pass may start now; the caller starts it. */
bool outage_allows(struct outage *o, int64_t now_ms);

/* The pass that was allowed needed no answer of GitHub's: another may ask. */
void outage_unasked(struct outage *o);

enum outage_change { OUTAGE_SAME, OUTAGE_BEGAN, OUTAGE_ENDED };
/* What became of a call for who (a number for each commit and downstream). Unknown (5xx, time-out,
 * reset) and what could not be sent count as no answer; our own limits say nothing, GitHub's are an
 * answer, and so is a refusal. */
enum outage_change outage_answered(struct outage *o, unsigned who,
                                   const struct github_answer *answer, int64_t now_ms);

#endif

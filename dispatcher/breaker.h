/* A breaker per downstream: one that fails again and again is left alone, but for one probe every
 * 30 s. What waits for it is parked (dispatch_decide.h). PURE.
 *
 *            5 failures in a row
 *   closed ───────────────────────▶ open ──┐ every 30 s one call may go: the probe
 *      ▲                             │ ▲   │
 *      └─── an answer, to any call ──┘ └───┘ a failure
 */
#ifndef CRCR_DISPATCHER_BREAKER_H
#define CRCR_DISPATCHER_BREAKER_H

#include "../common/github/github.h"

#define BREAKER_FAILURES 5
#define BREAKER_PROBE_MS 30000
/* Nobody asked for 15 min (a parked task is back within 7.5): the downstream is gone or has no
 * events. Forgotten, so that crcr_breaker_open does not stay 1. */
#define BREAKER_IDLE_MS  900000

/* One for each downstream that fails now; the others cost nothing. */
struct breakers;

struct breakers *breakers_new(void);
/* NULL is fine. */
void breakers_free(struct breakers *b);
/* Forgets those that nobody has asked for since then, and calls for each that was open. */
typedef void breaker_forgotten_fn(void *opaque, struct str repo);
void breakers_forget(struct breakers *b, int64_t unasked_since_ms, breaker_forgotten_fn *forgotten,
                     void *opaque);

/* True when a call for that repo may go; the caller makes it, and it may be the probe. */
bool breaker_allows(struct breakers *b, struct str repo, int64_t now_ms);
/* Since when it is open; now_ms when it is not. */
int64_t breaker_open_since(const struct breakers *b, struct str repo, int64_t now_ms);

enum breaker_change { BREAKER_SAME, BREAKER_OPENED, BREAKER_CLOSED };
/* What became of a call. Unknown (5xx, time-out, reset) is a failure; whatever else the call was
 * answered with is an answer, a refusal too; a limit and a refused token say nothing about the
 * downstream. Of what was not sent neither, and if it was the probe another may go at once. */
enum breaker_change breaker_answered(struct breakers *b, struct str repo,
                                     const struct github_answer *answer, int64_t now_ms);

#endif

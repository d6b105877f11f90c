/* What the answer to one of a pass's calls about comments and commits means for the pass. */
#ifndef CRCR_REPORTER_RECONCILE_CALL_H
#define CRCR_REPORTER_RECONCILE_CALL_H

#include "reconcile.h"

/* end is PASS_EQUAL when the call worked; otherwise how the pass ends. look_ms: our own budget held
 * the call back. These calls leave what is kept for check runs alone, so they must not hold those
 * up either: the pass goes on, and looks again at that time (wall clock). 0: not held back. */
struct call_verdict {
    enum pass_end end;
    int64_t look_ms;
};

/* Counts the call (call: for the metric's label). A limit that GitHub told holds back all passes.
 */
struct call_verdict call_judge(struct reconcile *r, const char *call,
                               const struct github_answer *answer);
/* The same for a call that was not even sent. */
struct call_verdict call_not_sent(struct reconcile *r, const char *call, enum err err,
                                  const struct why *why);
/* Has the target looked at again at look_ms, or before where the aggregate wants that. */
enum err call_put_off(const struct target *target, int64_t look_ms, struct why *why) MUST_CHECK;

#endif

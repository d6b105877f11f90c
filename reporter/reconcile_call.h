/* What the answer to one of a pass's calls to GitHub means for the pass. */
#ifndef CRCR_REPORTER_RECONCILE_CALL_H
#define CRCR_REPORTER_RECONCILE_CALL_H

#include "reconcile.h"

/* Counts the call (call: for the metric's label) and gives PASS_EQUAL when it worked; otherwise how
 * the pass ends. A limit holds back all passes. */
enum pass_end call_judge(struct reconcile *r, const char *call, const struct github_answer *answer);
/* The same for a call that was not even sent: a limit that another pass ran into costs no attempt
 * here either. */
enum pass_end call_not_sent(struct reconcile *r, enum err err);

#endif

/* Private to callback: workflow.triage_verdict, cut to what the relay keeps. PURE. */
#ifndef CRCR_MODEL_TRIAGE_VERDICT_H
#define CRCR_MODEL_TRIAGE_VERDICT_H

#include "../base/str.h"

/* The verdict normalised (unknown keys dropped) and cut, the caller's; NULL when it is structurally
 * wrong: a verdict is advice and never a reason to refuse a callback. */
char *triage_verdict_read(struct str json);

#endif

/* The on-call comments that follow from a pass, made after its check runs (oncall.h says what they
 * say). Only with CRCR_ONCALL_COMMENTS, and only for a pull request's newest commit. */
#ifndef CRCR_REPORTER_RECONCILE_COMMENT_H
#define CRCR_REPORTER_RECONCILE_COMMENT_H

#include "oncall.h"
#include "reconcile.h"

typedef void comments_done_fn(void *opaque, enum pass_end end, const char *reason);
/* jobs: those of the target's commit and downstream that have a check run; the array and what it
 * points to are borrowed until done is called, which happens exactly once, perhaps before this
 * returns. */
void comments_start(struct target *target, const struct oncall_job *jobs, size_t n,
                    comments_done_fn *done, void *opaque);

#endif

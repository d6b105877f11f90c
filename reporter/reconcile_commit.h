/* Whether a commit that nightly and periodic runs report exists upstream: asked once a commit, kept
 * in the view, shown on the pages. Never makes a check run. The reconcile record of such a commit
 * has the upstream repository where others have a downstream, so that one replica asks. */
#ifndef CRCR_REPORTER_RECONCILE_COMMIT_H
#define CRCR_REPORTER_RECONCILE_COMMIT_H

#include "reconcile.h"

/* True for the target of such a question. */
bool target_is_commit(const struct target *target);
/* As pass_start: pass_ended is called exactly once, perhaps before this returns. */
void commit_pass_start(struct target *target);

#endif

/* What a downstream repository does over time after a dispatch or a re-run:
 *
 *   queued ─delay_ms─▶ job starts ─run_ms─▶ job ends … last one ─after_ms─▶ run completed
 *                          └─ callback in_progress   └─ callback completed
 *
 * Jobs run side by side. */
#ifndef CRCR_SIM_REACTION_H
#define CRCR_SIM_REACTION_H

#include "call.h"
#include "runs.h"

/* Plans the jobs of the run's present attempt. */
void reaction_begin(struct sim *sim, struct run *run);

handler_fn runs_rerun, runs_rerun_failed, runs_cancel;

#endif

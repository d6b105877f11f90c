/* The states of a job, and how it may end. PURE. */
#ifndef CRCR_MODEL_JOB_STATE_H
#define CRCR_MODEL_JOB_STATE_H

#include "../base/str.h"

/* A job's state is a lattice: it only ever rises. JOB_TIMED_OUT: the relay ended it, because its
 * time or its run was over; the conclusion says how. */
enum job_state { JOB_NONE, JOB_DISPATCHED, JOB_IN_PROGRESS, JOB_TIMED_OUT, JOB_COMPLETED };
const char *job_state_name(enum job_state state); /* "none", "dispatched", "in_progress", … */
enum job_state job_state_of(struct str name);     /* JOB_NONE when unknown */

/* GitHub's conclusions (https://docs.github.com/en/rest/checks/runs); NULL-terminated. */
extern const char *const conclusions[];
bool conclusion_valid(struct str s);

#endif

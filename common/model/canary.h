/* The canary repository, whose jobs try each way that a job can end. PURE. */
#ifndef CRCR_MODEL_CANARY_H
#define CRCR_MODEL_CANARY_H

#include "../base/str.h"

#define CANARY_REPO "pytorch/crcr-test"

/* The conclusion that counts as success for the job: there, of one whose name has xfail, xcancel or
 * xtimeout in it, in any case, "failure", "cancelled" or "timed_out"; else "success". job_name:
 * NULL where it is not known. */
const char *canary_wanted_conclusion(struct str repo, const char *job_name);

#endif

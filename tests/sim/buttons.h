/* What people press on GitHub's pages, and check runs that tests put there. */
#ifndef CRCR_SIM_BUTTONS_H
#define CRCR_SIM_BUTTONS_H

#include "call.h"

/* POST /_sim/rerequest {"check_run": id} or {"check_suite": id}: sends the webhook, action
 * rerequested, that "Re-run" of one check and "Re-run all checks" send. GitHub sends one of the
 * first kind for each of "failed checks". Answers with the delivery. */
handler_fn buttons_rerequest;
/* POST /_sim/check_runs: an array of check runs as POST …/check-runs takes them, each with "repo",
 * and with "app_id" when it is another App's. Answers with them as they are then. */
handler_fn buttons_check_runs;

#endif

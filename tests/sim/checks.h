/* Check runs and the suites that hold them.
 * https://docs.github.com/en/rest/checks/runs */
#ifndef CRCR_SIM_CHECKS_H
#define CRCR_SIM_CHECKS_H

#include "call.h"

struct checks;

struct checks *checks_new(void);
void checks_free(struct checks *c);
void checks_reset(struct checks *c);
/* All check runs as GitHub shows them, each with its "repo"; oldest first. The caller's. */
json_t *checks_describe(const struct checks *c);

handler_fn checks_create, checks_update, checks_get;
/* Per commit (query: check_name, status, filter, app_id) and per suite. */
handler_fn checks_of_commit, checks_of_suite;
handler_fn suites_get;

#endif

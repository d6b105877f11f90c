/* Callbacks of downstream jobs to the relay, sent as the upstream's action sends them: the echoed
 * client_payload plus `workflow`, under the job's OIDC token, again on 429, 5xx and no answer. */
#ifndef CRCR_SIM_CALLBACKS_H
#define CRCR_SIM_CALLBACKS_H

#include "runs.h"

struct callbacks;

/* What became of each. */
struct callbacks *callbacks_new(void);
void callbacks_free(struct callbacks *c);
void callbacks_reset(struct callbacks *c);
/* Tells the relay the status ("in_progress", "completed") of that job; retries by itself. */
void callbacks_send(struct sim *sim, const struct run *run, size_t job, const char *status);
json_t *callbacks_describe(const struct callbacks *c);

#endif

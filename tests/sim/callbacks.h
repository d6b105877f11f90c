/* Callbacks of downstream jobs to the relay, sent as the upstream's action sends them: the echoed
 * client_payload plus `workflow`, under the job's OIDC token, again on 429, 5xx and no answer.
 * What became of each is remembered. */
#ifndef CRCR_SIM_CALLBACKS_H
#define CRCR_SIM_CALLBACKS_H

#include "runs.h"

/* Tells the relay the status ("in_progress", "completed") of that job; retries by itself. */
void callbacks_send(struct sim *sim, const struct run *run, size_t job, const char *status);

/* Those under way, and those that wait for their turn. */
struct sendings *sendings_new(void);
/* Forgets those that wait, for their turn or for another try; before the HTTP client ends. */
void sendings_clear(struct sendings *s);
/* How many were sent and not answered yet; sendings_clear() cannot take these back. */
size_t sendings_under_way(const struct sendings *s);
void sendings_free(struct sendings *s);

#endif

/* repository_dispatch: the record of the events, and the runs that they start.
 * https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event */
#ifndef CRCR_SIM_DISPATCHES_H
#define CRCR_SIM_DISPATCHES_H

#include "call.h"

struct dispatches;

struct dispatches *dispatches_new(void);
void dispatches_free(struct dispatches *d);
void dispatches_reset(struct dispatches *d);
/* Those that took effect, oldest first: repo, event_type, client_payload, at_ms, run_id. */
json_t *dispatches_describe(const struct dispatches *d);

handler_fn dispatches_create;

#endif

/* repository_dispatch: each event is remembered (repo, event_type, client_payload, at_ms, run_id)
 * and starts a run. https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event
 */
#ifndef CRCR_SIM_DISPATCHES_H
#define CRCR_SIM_DISPATCHES_H

#include "call.h"

handler_fn dispatches_create;

#endif

/* The simulator's own endpoints under /_sim/, for tests; neither recorded nor scripted. */
#ifndef CRCR_SIM_CONTROL_H
#define CRCR_SIM_CONTROL_H

#include "call.h"

/* GET /_sim/requests?since=N, GET /_sim/state, POST /_sim/script,
 * POST /_sim/downstreams, POST /_sim/reset. */
handler_fn control_requests, control_state, control_script, control_downstreams, control_reset;

#endif

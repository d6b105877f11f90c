/* The aggregate check run of a back end in a delivery, as GitHub has it, for the pages: the same
 * rules as reconcile's (aggregate.h), and whether it was sent. */
#ifndef CRCR_REPORTER_WEB_CHECK_STATE_H
#define CRCR_REPORTER_WEB_CHECK_STATE_H

#include "api.h"
#include "paths.h"

/* *ret, to be freed with check_states_free, has one of each of delivery's dispatches. */
enum err check_states_get(const struct web_view *w, const struct api_delivery *delivery,
                          struct check_state **ret, struct why *why) MUST_CHECK;
void check_states_free(struct check_state *states, size_t n);

#endif

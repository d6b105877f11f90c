/* The aggregate check run of a back end in a delivery, for the pages: as reconcile has sent it to
 * GitHub, or why it has not. */
#ifndef CRCR_REPORTER_WEB_CHECK_STATE_H
#define CRCR_REPORTER_WEB_CHECK_STATE_H

#include "api.h"
#include "paths.h"

/* d: one of delivery's dispatches. *ret is all 0 before; it stays so below L4, unless it was at L4
 * when its check run was made. */
enum err check_state_get(const struct web_view *w, const struct api_delivery *delivery,
                         const struct dispatch_view *d, struct check_state *ret,
                         struct why *why) MUST_CHECK;

#endif

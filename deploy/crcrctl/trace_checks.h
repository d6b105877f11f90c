/* What the view has of a delivery, for `crcrctl trace`: states, check runs, on-call comments. */
#ifndef CRCR_CTL_TRACE_CHECKS_H
#define CRCR_CTL_TRACE_CHECKS_H

#include "ctl.h"
#include "timeline.h"

/* Asks the view; where it cannot be asked, trouble says why. *ret is to be cleared. */
void trace_checks_read(const struct ctl *ctl, struct str delivery, struct timeline_checks *ret);

#endif

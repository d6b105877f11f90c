/* What GitHub and the view say of a repository, for `crcrctl probe`. What cannot be asked is told
 * in the facts, not as an error. */
#ifndef CRCR_CTL_PROBE_ASK_H
#define CRCR_CTL_PROBE_ASK_H

#include "ctl.h"
#include "probe.h"

/* Fills app, workflows and what goes with them. */
void probe_ask_github(const struct ctl *ctl, struct probe_facts *f);
/* Fills check and check_text: the newest check run among the repository's newest jobs. */
void probe_ask_view(const struct ctl *ctl, struct probe_facts *f);

#endif

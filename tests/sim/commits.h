/* Commits: every full SHA is one that exists, but those that begin with 0000 and those that
 * /_sim/script answers otherwise. */
#ifndef CRCR_SIM_COMMITS_H
#define CRCR_SIM_COMMITS_H

#include "call.h"

bool commit_known(struct str sha);

handler_fn commits_get;

#endif

/* --history FILE: what downstreams saw and got through, one line of JSON each, appended as it
 * happens and never changed: the dispatches that took effect, the callbacks that were answered with
 * 2xx or refused for good, and what the HUD got. tests/faults reads it after the fact. */
#ifndef CRCR_SIM_HISTORY_H
#define CRCR_SIM_HISTORY_H

#include <stdio.h>

#include "call.h"
#include "runs.h"

/* NULL for path gives NULL, which the functions below take as "keep none". */
enum err history_open(FILE **ret, const char *path, struct why *why) MUST_CHECK;
/* A dispatch took effect: run is the one that it started. */
void history_dispatch(FILE *file, const struct call *call, const struct run *run);
/* A callback was answered: row as in /_sim/state. Kept as "callback" when with 2xx, as "refusal"
 * when with 4xx but 429; of others another attempt follows. */
void history_callback(FILE *file, const json_t *row);
/* The HUD took a post. */
void history_hud(FILE *file, const json_t *post);

#endif

/* The HUD's API, as the relay forwards results to it. x-hud-internal-bot must be --hud-key. The
 * bodies that were accepted are remembered. */
#ifndef CRCR_SIM_HUD_H
#define CRCR_SIM_HUD_H

#include "call.h"

handler_fn hud_post;

#endif

/* The HUD's API, as the relay forwards results to it (behaviour.md, Forward). */
#ifndef CRCR_SIM_HUD_H
#define CRCR_SIM_HUD_H

#include "call.h"

struct hud;

/* key: what x-hud-internal-bot must say; NULL: anything but nothing. Kept. */
struct hud *hud_new(const char *key);
void hud_free(struct hud *h);
void hud_reset(struct hud *h);
/* The bodies that were accepted, oldest first. */
json_t *hud_describe(const struct hud *h);

handler_fn hud_post;

#endif

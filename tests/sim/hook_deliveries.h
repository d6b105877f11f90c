/* The App's webhook: deliveries as GitHub remembers them, and sending.
 * https://docs.github.com/en/rest/apps/webhooks */
#ifndef CRCR_SIM_HOOK_DELIVERIES_H
#define CRCR_SIM_HOOK_DELIVERIES_H

#include "call.h"

struct deliveries;

struct deliveries *deliveries_new(void);
void deliveries_free(struct deliveries *d);
void deliveries_reset(struct deliveries *d);
/* Newest first, without request and response. */
json_t *deliveries_describe(const struct deliveries *d);

/* Signs and sends a webhook as GitHub does, and remembers its delivery, which is given as the list
 * of deliveries shows it: the caller's. guid NULL: a new one. payload is borrowed. */
json_t *deliveries_send(struct sim *sim, const char *event, const char *guid, json_t *payload);

handler_fn deliveries_list, deliveries_get;
/* POST …/attempts: sends the webhook again under the same GUID. */
handler_fn deliveries_attempt;
/* POST /_sim/webhook {"event", "payload"[, "guid"][, "status_code"][, "delivered_at"]
 * [, "redelivery"]}: signs and sends as GitHub does (to --webhook-url, under --webhook-secret) and
 * remembers the delivery with what came back. With status_code nothing is sent: the delivery is
 * remembered as having ended so; 0: not answered yet. */
handler_fn deliveries_create;

#endif

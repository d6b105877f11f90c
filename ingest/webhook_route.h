/* POST /github/webhook: from an HTTP exchange to webhook.c's decision and on to the responder. */
#ifndef CRCR_INGEST_WEBHOOK_ROUTE_H
#define CRCR_INGEST_WEBHOOK_ROUTE_H

#include "responder.h"
#include "webhook.h"

struct webhook_route {
    struct responder *responder;
    struct webhook_rules rules;
    const char *topic;
};

/* Before the body is read. */
void webhook_begin(const struct webhook_route *route, struct http_exchange *x);
/* With the whole body; on a thread of the HTTP server, which it never holds up. */
void webhook_handle(const struct webhook_route *route, struct http_exchange *x);

#endif

/* The whole of ingest: what main.c hands to the daemon's frame. */
#ifndef CRCR_INGEST_SERVICE_H
#define CRCR_INGEST_SERVICE_H

#include "../common/daemon/daemon.h"

/* Builds everything; the port is open afterwards, and what comes before Kafka is there is answered
 * 503. */
enum err service_start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why);
/* The one role: watches the broker, keeps the gauges, and drains. */
enum err service_run(struct role_ctx *role, void *opaque, struct why *why);
void service_stop(void *opaque);

#endif

/* POST /github/callback: threads of its own take each callback through the steps in their order
 * (callback.h has the PURE ones). Some steps wait, for Redis or for an issuer's first keys; so
 * neither the HTTP server's threads nor webhooks wait for them. GET /github/whoami takes the same
 * steps up to the rate, and says what they found (whoami.h). */
#ifndef CRCR_INGEST_CALLBACK_ROUTE_H
#define CRCR_INGEST_CALLBACK_ROUTE_H

#include "../common/crypto/callback_token.h"
#include "../common/io/redis.h"
#include "../common/view/allowlist_feed.h"
#include "oidc.h"
#include "responder.h"

struct callback_route;

/* All borrowed, for as long as the route lives. */
struct callback_options {
    struct responder *responder;
    struct oidc *oidc;
    struct allowlist_feed *feed;
    const struct callback_keys *keys; /* NULL: only dispatch records prove anything */
    struct redis_options redis;
    const char *topic;
    int64_t requests_per_min, bytes_per_min, bytes_a_day; /* of one downstream */
    const char *public_url;                               /* of the pages; NULL: not known */
};

enum err callback_route_new(struct callback_route **ret, const struct callback_options *options,
                            struct why *why) MUST_CHECK;
/* Answers 503 to what still waits. NULL is fine. */
void callback_route_free(struct callback_route *r);

/* Before the body is read. names: callback_names or whoami_names, which of the two it is. */
void callback_begin(struct callback_route *r, struct http_exchange *x,
                    const struct route_names *names);
/* With the complete body: queues it for the route's threads. */
void callback_handle(struct callback_route *r, struct http_exchange *x,
                     const struct route_names *names);

#endif

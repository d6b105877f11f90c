/* Answers the JSON API: at once, or when something changes. One thread renders all answers, with
 * its own connection to Redis.
 *
 *   GET /api/crcr/…        ─▶ live_ask  ─▶ from the cache, or rendered: first come, first served
 *   GET /api/crcr/live?of= ─▶ live_wait ─▶ looked at again in turn, until one of the paths has
 *                                          another digest than the client, or for 20 s
 *
 * A rendered answer is cached for 2 s: no path is rendered more often, however many clients read
 * it. A waiting client is looked at every 2 s, the one that waited longest first, with at most 20
 * renderings a second in all. A look is followed by a pause of 30 times its duration (Redis
 * included): at most 1 s for all clients, 30 s for the address that it was for. So 500 different
 * paths are looked at every 25 s, and large ones more rarely. While Redis is unavailable, all who
 * wait are answered: they ask, and get the error. */
#ifndef CRCR_REPORTER_WEB_LIVE_H
#define CRCR_REPORTER_WEB_LIVE_H

#include "page_cache.h"
#include "paths.h"
#include "web.h"

struct live;

/* Starts the thread. view is copied; what it points to, and role, must outlive the thread, which
 * calls role_alive for the role. */
enum err live_new(struct live **ret, const struct web_view *view, struct role_ctx *role,
                  struct why *why) MUST_CHECK;
/* Ends the thread, and answers 503 to those who still ask. NULL is fine. */
void live_free(struct live *l);

/* Answers x with what ask names, once it is rendered. Takes over ask, which has no fault. When 100
 * answers wait, the newest of the address with most of them gets 503. On the server's thread, as
 * live_wait. */
void live_ask(struct live *l, struct http_exchange *x, struct path_ask *ask);
/* Answers x with an event as soon as one of the paths in its parameters `of` (at most 8) has
 * another digest than x says. 404: one of them is no path. At most 2,000 requests wait; beyond that
 * the newest of the address with most of them gets 503. */
void live_wait(struct live *l, struct http_exchange *x);
/* Answers all who wait, now and from now on: they come again and reach another replica. */
void live_leave(struct live *l);

#endif

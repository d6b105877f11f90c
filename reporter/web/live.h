/* Who reads the JSON API: for an answer now, or for answers to change. One thread renders for all,
 * with a connection to Redis of its own.
 *
 *   GET /api/crcr/…        ─▶ live_ask  ─▶ out of the cache, or rendered: first come, first served
 *   GET /api/crcr/live?of= ─▶ live_wait ─▶ looked at again in turn, until one of the paths has
 *                                          another digest than the client, or for 20 s
 *
 * What was rendered goes into the cache and is as good as new for 2 s: no path is rendered more
 * often, however many ask and wait. Whoever waits is looked at every 2 s, who has waited longest
 * first, all together at most 20 times a second with a rendering. A look is followed by 30 times as
 * long without one, Redis included: but by no more than 1 s for all, and 30 s for the address that
 * it was for. So 500 paths that differ are looked at every 25 s, and those that are large more
 * rarely. Where Redis is unavailable all who wait are sent to ask, and learn it there. */
#ifndef CRCR_REPORTER_WEB_LIVE_H
#define CRCR_REPORTER_WEB_LIVE_H

#include "page_cache.h"
#include "paths.h"
#include "web.h"

struct live;

/* Starts the thread. view is copied; what it names, and role, are borrowed and must outlive it. The
 * thread gives the role's signs of life. */
enum err live_new(struct live **ret, const struct web_view *view, struct role_ctx *role,
                  struct why *why) MUST_CHECK;
/* Ends the thread, and answers 503 to those who still ask. NULL is fine. */
void live_free(struct live *l);

/* Answers x with what ask names, once it is rendered. ask is taken over; it has no fault. Where 100
 * answers are to be rendered the newest of the address that waits for most is 503. On the server's
 * thread, as the next. */
void live_ask(struct live *l, struct http_exchange *x, struct path_ask *ask);
/* Answers x with an event, once one of the paths that its parameters `of` name, up to 8, has
 * another digest than x says. 404: one of them is no path. At most 2,000 wait; more: the newest
 * of the address with most is 503. */
void live_wait(struct live *l, struct http_exchange *x);
/* Answers all who wait, now and from now on: they come again, and find another replica. */
void live_leave(struct live *l);

#endif

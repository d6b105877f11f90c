/* Who waits for the JSON API: for an answer now, or for the answer to change. One thread renders
 * for all, with a connection to Redis of its own.
 *
 *   GET /api/crcr/…        ─▶ live_ask  ─▶ first come, first rendered; one rendering answers all
 *   GET /api/crcr/live?of= ─▶ live_wait ─▶ looked at again in turn, until its digest differs from
 *                                          the one that the client has, or for 20 s
 *
 * Each path that somebody waits for is looked at at most every 2 s; all together at most 20 times a
 * second, and for at most a thirtieth of the time, Redis included. So 500 pages that differ are
 * looked at every 25 s, and those that are large more rarely. What was rendered goes into the
 * cache. Where Redis is unavailable all who wait are sent to ask, and learn it there. */
#ifndef CRCR_REPORTER_WEB_LIVE_H
#define CRCR_REPORTER_WEB_LIVE_H

#include "paths.h"
#include "web.h"

/* How long an answer of the cache is as good as a new one. */
#define LIVE_FRESH_MS 2000

struct live;

/* Starts the thread. view is copied; what it names, cache and role are borrowed and must outlive
 * it. The thread gives the role's signs of life. */
enum err live_new(struct live **ret, const struct web_view *view, struct page_cache *cache,
                  struct role_ctx *role, struct why *why) MUST_CHECK;
/* Ends the thread, and answers 503 to those who still ask. NULL is fine. */
void live_free(struct live *l);

/* Answers x with what ask names, once it is rendered. ask is taken over. Any thread. */
void live_ask(struct live *l, struct http_exchange *x, struct path_ask *ask);
/* Answers x with an event, once what ask names has another digest than x says. ask is taken over.
 * At most 2,000 wait; more: 503. Any thread. */
void live_wait(struct live *l, struct http_exchange *x, struct path_ask *ask);
/* Answers all who wait, now and from now on: they come again, and find another replica. */
void live_leave(struct live *l);

#endif

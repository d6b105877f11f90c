/* What the files of the role web share of its answers. Any thread; x must not be used after it. */
#ifndef CRCR_REPORTER_WEB_WEB_H
#define CRCR_REPORTER_WEB_WEB_H

#include "../../common/io/http_server.h"
#include "../reporter.h"
#include "page_cache.h"

#define ANSWER_MS 12000 /* then it is 503, whatever is answered; the pages give up after 15 s */

/* Answers x with the headers that every answer of the pages has, and counts it under that route.
 * type NULL: JSON. etag, bare, may be NULL. */
void web_reply(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
               const char *type, const char *etag, struct str body);
/* With a page, which it holds while it is sent, or with 304 where the client says that it has it.
 */
void web_reply_page(struct role_ctx *role, struct http_exchange *x, const char *route,
                    const char *type, struct page *page);
/* With {"detail": "…"}, which needs no escaping. */
void web_reply_error(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
                     const char *detail);

#endif

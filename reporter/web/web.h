/* Answers of the role web, for its files. Any thread; do not use x afterwards. */
#ifndef CRCR_REPORTER_WEB_WEB_H
#define CRCR_REPORTER_WEB_WEB_H

#include "../../common/io/http_server.h"
#include "../reporter.h"
#include "page_cache.h"

#define ANSWER_MS 12000 /* after that the answer is 503; the pages give up after 15 s */

/* Answers x with the headers that all answers of the pages have, and counts it for that route. type
 * NULL: JSON. */
void web_reply(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
               const char *type, struct str body);
/* Answers with a page, held while it is sent, compressed if the client accepts that; or with 304
 * when the client has it. */
void web_reply_page(struct role_ctx *role, struct http_exchange *x, const char *route,
                    const char *type, struct page *page);
/* Answers {"detail": "…"}; detail must need no escaping. */
void web_reply_error(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
                     const char *detail);

#endif

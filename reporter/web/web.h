/* What the files of the role web share of its answers. */
#ifndef CRCR_REPORTER_WEB_WEB_H
#define CRCR_REPORTER_WEB_WEB_H

#include "../../common/io/http_server.h"
#include "../reporter.h"
#include "page_cache.h"
#include "paths.h"

/* Answers x with the headers that every answer of the pages has, and counts it under that route.
 * type NULL: JSON. etag, bare, may be NULL. Any thread; x must not be used after it. */
void web_reply(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
               const char *type, const char *etag, struct str body);
/* Answers with a page of that path, or with 304 where the client says that it has it. */
void web_reply_page(struct role_ctx *role, struct http_exchange *x, const struct api_path *path,
                    const struct page *page);

#endif

/* Answers as microhttpd takes them; NULL when there is no memory. The caller's. */
#ifndef CRCR_IO_HTTP_SERVER_ANSWER_H
#define CRCR_IO_HTTP_SERVER_ANSWER_H

#include "../base/headers.h"

struct MHD_Response;

/* The body is copied; extra may be NULL; content_type NULL: application/json. */
struct MHD_Response *http_answer_new(const char *content_type, const struct headers *extra,
                                     struct str body);
/* {"<key>": "<detail>"}; a 503 says when to come again. allow: the methods of a 405, else
 * STR_NONE. */
struct MHD_Response *http_answer_error(const char *key, int status, const char *detail,
                                       struct str allow);

#endif

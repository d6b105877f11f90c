/* The head of an HTTP request as a copy in one block: the deadline may have answered, and
 * microhttpd forgotten the request, while a handler still reads it. */
#ifndef CRCR_IO_HTTP_SERVER_HEAD_H
#define CRCR_IO_HTTP_SERVER_HEAD_H

#include "../base/headers.h"

struct MHD_Connection;

enum http_part_kind { HTTP_HEADER, HTTP_QUERY };

struct http_part {
    enum http_part_kind kind;
    struct str name, value; /* of the query: decoded */
};

struct http_head {
    struct str method;
    struct str path; /* decoded; without a trailing slash */
    size_t n;
    struct http_part parts[]; /* the text that they borrow follows */
};

/* Copies; free() what it returns. */
struct http_head *http_head_new(struct MHD_Connection *connection, const char *method,
                                const char *path);
/* The first of that name, or STR_NONE. The case of a header's name is ignored. */
struct str http_head_get(const struct http_head *h, enum http_part_kind kind, const char *name);
/* All of a kind in the order in which they came; past HEADERS_MAX they are left out. Borrows. */
void http_head_list(const struct http_head *h, enum http_part_kind kind, struct headers *to);

#endif

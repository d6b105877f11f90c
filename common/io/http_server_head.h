/* Ambiguous request heads, for http_server.c. We must see the same request as a proxy before us,
 * with the same end and path (request smuggling, RFC 9112 section 11.2).
 *
 * libmicrohttpd refuses other faults itself. 1.0 (Debian 13): a bare LF or CR, NUL, a folded line,
 * a blank in or before a name. 0.9.75 (Debian 12) accepts LF as the end of a line (as RFC 9112
 * section 2.2 allows), drops what follows a NUL, and appends a folded line's text to the name; its
 * API does not show this. Every 4xx closes the connection, so bytes hidden in or after a refused
 * request are never read as a request. */
#ifndef CRCR_IO_HTTP_SERVER_HEAD_H
#define CRCR_IO_HTTP_SERVER_HEAD_H

#include <stdbool.h>

struct MHD_Connection;

/* Escapes in the path of a request's target (not in its query). */
struct http_escaped {
    bool nul, slash; /* %00, %2F */
};

/* target is borrowed, as received. */
struct http_escaped http_target_escaped(const char *target);

/* Why the head is ambiguous (a literal), or NULL. Ambiguous are: Transfer-Encoding with
 * Content-Length, a coding other than chunked alone, or any in HTTP/1.0 (RFC 9112 sections 6.1 to
 * 6.3); two of a header that decides (Content-Length, Transfer-Encoding, Host, Authorization,
 * X-Hub-Signature-256); a name that is no token (RFC 9112 section 5.1); a control character in a
 * value (RFC 9110 section 5.5). On the connection's thread, once the head has come. */
const char *http_head_fault(struct MHD_Connection *connection, const char *version);

#endif

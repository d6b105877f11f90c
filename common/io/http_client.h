/* HTTP requests, many in flight on one thread (libcurl's multi interface). HTTP/2 by ALPN over TLS,
 * HTTP/1.1 otherwise. Certificates are always verified. Redirects are not followed. */
#ifndef CRCR_IO_HTTP_CLIENT_H
#define CRCR_IO_HTTP_CLIENT_H

#include "../base/headers.h"
#include "../base/wake.h"

struct http_client;

struct http_client_options {
    const char *user_agent;
    const char *ca_file;      /* NULL: the system's */
    int max_connections_host; /* 0: 32 */
};

struct http_request {
    const char *method;
    const char *url; /* one that came from outside was seen by http_url_check when it came */
    const struct headers *headers; /* may be NULL; copied */
    struct str body;               /* borrowed until answered; ptr NULL: none */
    int timeout_ms;                /* 0: 20,000 */
    size_t max_body_bytes;         /* of the answer; 0: 1 MiB; more is ERR_REFUSE */
    int64_t send_by_ms;            /* clock_boot_ms: not sent after that; 0: no limit */
};

/* The answer; borrowed during the callback. OK: a complete answer with a status. ERR_RETRY: not
 * sent (no connection, DNS). ERR_UNKNOWN: sent, or perhaps sent, without a complete answer
 * (timeout, reset). Also a stream that the server refused: it did not work on that one (RFC 9113
 * section 8.7), but libcurl cannot tell it from a broken connection. That can happen before the
 * SETTINGS of a server that allows fewer than 100 streams. ERR_REFUSE: the certificate was refused
 * and nothing sent (status 0), or the answer is too large. */
struct http_answer {
    enum err err;
    bool late; /* ERR_RETRY because of send_by_ms: not the server's failure */
    int status;
    const struct headers *headers;
    struct str body;
    int64_t micros;     /* from start to the last byte */
    int http_version;   /* 10, 11, 20 */
    const char *reason; /* for err != OK */
};

typedef void http_answered_fn(void *opaque, const struct http_answer *answer);

enum err http_client_new(struct http_client **ret, const struct http_client_options *options,
                         struct why *why) MUST_CHECK;
/* Calls the callback of each request in flight with ERR_UNKNOWN. NULL is fine. */
void http_client_free(struct http_client *c);
/* Starts a request. OK: done is called exactly once, from http_client_poll or _free. ERR_REFUSE:
 * the method or a header would break the request. Of a URL that libcurl cannot read done gets
 * ERR_REFUSE. */
enum err http_client_start(struct http_client *c, const struct http_request *request,
                           http_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* Waits up to timeout_ms for network activity or wake (may be NULL; not reset here), serves the
 * requests and calls their callbacks. Returns how many are still in flight. */
size_t http_client_poll(struct http_client *c, struct wake *wake, int timeout_ms);
/* May we go there? OK: https, http to a loopback host (127.0.0.0/8, ::1, localhost), or any http
 * with allow_http. For each URL that comes from outside, where it comes in. */
enum err http_url_check(const char *url, bool allow_http, struct why *why) MUST_CHECK;
/* Percent-encodes one path segment (RFC 3986 section 2.1; unreserved characters stay). */
struct buf;
void http_encode(struct buf *to, struct str segment);

#endif

/* An HTTP/1.1 server (libmicrohttpd, epoll, a few threads) whose handlers may answer later, from
 * any thread. No thread waits: the connection is suspended until http_reply.
 *
 *   request line + headers ─▶ begin (may reply at once: the body is then not read)
 *   body (counted against max_inflight_bytes) ─▶ handle ─▶ http_reply, now or later, once
 *   deadline_ms after the last byte without a reply ─▶ 503; a later http_reply is ignored
 *
 * At a limit the server ends the connection of the client that has been overdue longest, never of
 * the newest. At max_connections: one that has not sent its head or body, or not read its answer.
 * At max_inflight_bytes: one whose body is incomplete, with 503. Complete requests are always
 * answered.
 *
 * A head that two servers could read differently is answered 400 (http_server_head.h). A 4xx answer
 * closes its connection. */
#ifndef CRCR_IO_HTTP_SERVER_H
#define CRCR_IO_HTTP_SERVER_H

#include "../base/err.h"
#include "../base/headers.h"

struct http_server;
struct http_exchange; /* one request and its reply */

typedef void http_exchange_fn(void *opaque, struct http_exchange *x);

struct http_route {
    const char *method; /* "GET" also serves HEAD */
    const char *path; /* exact (a trailing slash is accepted), or a prefix when it ends in a star */
    http_exchange_fn
        *begin; /* may be NULL; runs before the body is read; may http_reply to refuse */
    http_exchange_fn *handle; /* the body is complete; must http_reply now or later */
    size_t max_body_bytes;    /* more: 413. Checked on Content-Length first, then while reading */
    int deadline_ms;          /* 0: none */
    int body_ms; /* the body must be complete so long after the head, else 408; 0: no limit */
};

/* The server has answered a route's request itself: ambiguous head (400), body too large (413), too
 * many bytes in hand (503), or body not complete in time (408). On one of the server's threads. */
typedef void http_refused_fn(void *opaque, struct http_exchange *x, int status);

struct http_server_options {
    const char *listen; /* "host:port", "[::1]:port"; port 0 picks a free one */
    const struct http_route *routes;
    size_t n_routes;
    void *opaque;             /* given to begin, handle and refused */
    http_refused_fn *refused; /* may be NULL */
    int threads;              /* 0: 1 */
    int max_connections; /* 0: 10,000. At most 3/4 of the process's descriptor limit; more wait in
                            the backlog. From 7/8 of them on, each new one ends the one that has
                            been overdue longest */
    int max_connections_per_address; /* 0: no limit; each thread counts on its own */
    int idle_timeout_s; /* 0: 30. Ends the connection of a client that sends nothing for so long,
                           takes three times as long for one request, or 10 s for its head */
    size_t max_inflight_bytes;  /* bodies in hand of all requests; 0: no limit. Beyond it the oldest
                                   incomplete one ends, else this one: 503 + Retry-After */
    const char *json_error_key; /* errors of the server itself are {"detail": "…"} */
};

enum err http_server_new(struct http_server **ret, const struct http_server_options *options,
                         struct why *why) MUST_CHECK;
/* Stops accepting, waits up to drain_ms for open requests, closes. NULL is fine. */
void http_server_free(struct http_server *s, int drain_ms);
/* From now on each answer says "Connection: close"; new connections are still accepted. */
void http_server_last_requests(struct http_server *s);
/* Closes the listening socket and serves the requests that it has. A client that connects at that
 * moment, or whose first bytes were not read yet, may be reset. So the load balancer must have
 * removed this replica before (readiness, CRCR_SHUTDOWN_DELAY). */
void http_server_quiesce(struct http_server *s);
int http_server_port(const struct http_server *s);
/* Requests begun and not answered. */
size_t http_server_in_flight(struct http_server *s);
/* The limit of connections for a wanted number (0: the default): at most 3/4 of the descriptors, so
 * that some are left for Kafka, Redis and the issuers. */
size_t http_server_max_connections(int wanted);

/* Parts of the request, borrowed until the reply is sent. Absent: STR_NONE. */
struct str http_method(const struct http_exchange *x);
struct str
http_path(const struct http_exchange *x); /* percent-decoded; a trailing slash taken off */
struct str http_header(const struct http_exchange *x, const char *name);
struct str http_query(const struct http_exchange *x, const char *name); /* decoded */
/* The address of the client, or of the proxy that it came through. Of an IPv6 address only the
 * first half, which belongs to one customer. Before the reply. */
#define HTTP_ADDRESS_SIZE 48
struct str http_address(const struct http_exchange *x, char to[HTTP_ADDRESS_SIZE]);
/* All headers, and all query parameters, in their order; those past HEADERS_MAX are left out. */
void http_headers(const struct http_exchange *x, struct headers *to);
void http_queries(const struct http_exchange *x, struct headers *to);
struct str http_body(const struct http_exchange *x);
/* When the last byte of the body came, wall clock in ms. */
int64_t http_received_ms(const struct http_exchange *x);
/* The body as a malloc'ed block that is now the caller's; http_body is empty afterwards. */
char *http_take_body(struct http_exchange *x, size_t *len);

/* Answers. Call it exactly once per handled exchange, and do not use x afterwards. If the deadline
 * has answered already, it only releases x and returns false. body is copied; extra may be NULL.
 * content_type NULL: application/json. Any thread. */
bool http_reply(struct http_exchange *x, int status, const char *content_type,
                const struct headers *extra, struct str body);
/* The same, without a copy: body is borrowed until release(owner), once, on any thread. */
bool http_reply_lent(struct http_exchange *x, int status, const char *content_type,
                     const struct headers *extra, struct str body, void (*release)(void *owner),
                     void *owner);
/* For when lent bodies take too much memory. Soon, on x's thread, ends the connection whose client
 * has been reading its answer longest, if any. Call it before x is answered. Any thread. */
void http_end_slowest_reader(struct http_exchange *x);
/* Instead of a reply: closes the connection without a byte of an answer, like a crashed server. For
 * the simulator. */
void http_abort(struct http_exchange *x);
/* {"detail": "…"} with that status; the text is escaped. */
bool http_reply_error(struct http_exchange *x, int status, const char *detail);

#endif

/* An HTTP/1.1 server (libmicrohttpd, epoll, a few threads) whose handlers may answer later, from
 * any thread, without holding one: the connection is suspended until http_reply.
 *
 *   request line + headers ─▶ begin (may reply at once: the body is then not read)
 *   body (counted against max_inflight_bytes) ─▶ handle ─▶ http_reply, now or later, once
 *   deadline_ms after the last byte with no reply ─▶ late answers 503; a later http_reply is
 * ignored
 *
 * Where there is no room, who has been due longest ends, never the newest: of the connections
 * (max_connections) one whose head, body or reading of an answer is not complete; of the bodies
 * (max_inflight_bytes) an incomplete one, with 503. What is complete is answered.
 *
 * A head that two servers could read differently is answered 400 (http_server_head.h). What is
 * answered 4xx closes its connection. */
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
    http_exchange_fn *handle; /* the whole body is there; must http_reply now or later */
    size_t max_body_bytes;    /* more: 413. Checked on Content-Length first, then while reading */
    int deadline_ms;          /* 0: none */
    int body_ms; /* the body must be complete so long after the head: else 408; 0: no such limit */
};

/* The server has answered a route's request itself: its head is ambiguous (400), or its body too
 * large (413), too much in hand in all (503), or not complete in time (408). On a thread of the
 * server's. */
typedef void http_refused_fn(void *opaque, struct http_exchange *x, int status);

struct http_server_options {
    const char *listen; /* "host:port", "[::1]:port"; port 0 picks a free one */
    const struct http_route *routes;
    size_t n_routes;
    void *opaque;             /* given to begin, handle and refused */
    http_refused_fn *refused; /* may be NULL */
    int threads;              /* 0: 1 */
    int max_connections;      /* 0: 10,000, at most three quarters of the descriptors that the
                                 process may have; more wait in the backlog. From 7/8 of them on
                                 each new one ends the one that has been due longest */
    int max_connections_per_address; /* 0: no limit; each thread counts on its own */
    int idle_timeout_s;         /* 0: 30; a client that sends nothing for so long is cut off, and
                                   one that takes three times as long for one request, or 10 s for
                                   its head */
    size_t max_inflight_bytes;  /* bodies in hand over all requests; 0: no limit; more: the oldest
                                   incomplete one ends, or, where there is none, this one: 503 +
                                   Retry-After */
    const char *json_error_key; /* errors of the server itself are {"detail": "…"} */
};

enum err http_server_new(struct http_server **ret, const struct http_server_options *options,
                         struct why *why) MUST_CHECK;
/* Stops accepting, waits up to drain_ms for replies under way, closes. NULL is fine. */
void http_server_free(struct http_server *s, int drain_ms);
/* From now on each answer says "Connection: close"; new connections are still taken. */
void http_server_last_requests(struct http_server *s);
/* Closes the listening socket, goes on with the requests that it has. Who connects at that moment,
 * or has connected and sent nothing that was read yet, may be reset: a load balancer must have
 * forgotten this replica before (readiness, CRCR_SHUTDOWN_DELAY). */
void http_server_quiesce(struct http_server *s);
int http_server_port(const struct http_server *s);
/* Requests begun and not answered. */
size_t http_server_in_flight(struct http_server *s);
/* How many connections are taken at once where so many are wanted (0: the default): at most three
 * quarters of the descriptors, so that Kafka, Redis and the issuers stay within reach however many
 * clients come. */
size_t http_server_max_connections(int wanted);

/* Parts of the request, borrowed until the reply is sent. Absent: STR_NONE. */
struct str http_method(const struct http_exchange *x);
struct str
http_path(const struct http_exchange *x); /* percent-decoded; a trailing slash taken off */
struct str http_header(const struct http_exchange *x, const char *name);
struct str http_query(const struct http_exchange *x, const char *name); /* decoded */
/* Whose request it is: the address of the other end, which is the proxy's behind one. Of IPv6 the
 * first half, which one customer has. Before the reply. */
#define HTTP_ADDRESS_SIZE 48
struct str http_address(const struct http_exchange *x, char to[HTTP_ADDRESS_SIZE]);
/* All headers, and all parameters of the query, in the order in which they came; past HEADERS_MAX
 * they are left out. */
void http_headers(const struct http_exchange *x, struct headers *to);
void http_queries(const struct http_exchange *x, struct headers *to);
struct str http_body(const struct http_exchange *x);
/* Wall-clock milliseconds at which the last byte of the body had come. */
int64_t http_received_ms(const struct http_exchange *x);
/* The body as a malloc'ed block that is now the caller's; http_body is empty afterwards. */
char *http_take_body(struct http_exchange *x, size_t *len);

/* Answers. Exactly one call per exchange that was handled (also when the deadline has answered
 * already: then it does nothing but release x, and returns false). body is copied; extra may be
 * NULL. content_type NULL: application/json. After this x must not be used. Any thread. */
bool http_reply(struct http_exchange *x, int status, const char *content_type,
                const struct headers *extra, struct str body);
/* The same, without a copy: body is borrowed until release(owner), once, on any thread. */
bool http_reply_lent(struct http_exchange *x, int status, const char *content_type,
                     const struct headers *extra, struct str body, void (*release)(void *owner),
                     void *owner);
/* What is lent takes too much room: of the connections of x's thread one ends, soon, that has an
 * answer to read since longest, if any has. Before x is answered. Any thread. */
void http_end_slowest_reader(struct http_exchange *x);
/* Instead of a reply: closes the connection without a byte of an answer, as a server does that
 * dies. For the simulator. */
void http_abort(struct http_exchange *x);
/* {"detail": "…"} with that status; the text is escaped. */
bool http_reply_error(struct http_exchange *x, int status, const char *detail);

#endif

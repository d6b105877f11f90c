/* What the files of the HTTP server share; nobody else includes this, but its tests.
 *
 * Locks, in the order in which they may be taken: exchange.lock, then http_server.lock. No lock is
 * held while begin or handle runs. */
#ifndef CRCR_IO_HTTP_SERVER_INNER_H
#define CRCR_IO_HTTP_SERVER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "../base/wake.h"
#include "http_server.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

/* reading ──▶ handling ──▶ suspended ──▶ answered     answered is reached once, from any of the
 *    └───────────┴─────────────────────────▲          others: by the handler, by a refusal, by the
 *                                                      deadline or by the end of the server */
enum exchange_state { EXCHANGE_READING, EXCHANGE_HANDLING, EXCHANGE_SUSPENDED, EXCHANGE_ANSWERED };

enum part_kind { PART_HEADER, PART_QUERY };

struct part {
    enum part_kind kind;
    struct str name;
    struct str value;
};

/* One TCP connection, so that a client which brings its request in drop by drop is cut off. */
struct http_peer {
    struct http_peer *prev, *next; /* under server->lock */
    int fd;
    int64_t opened_ms;
    bool asked;                    /* under server->lock: it has brought in a request */
    atomic_llong waiting_since_ms; /* monotonic: the client's turn since then; 0: ours */
    atomic_llong body_due_ms; /* monotonic: then the body must be complete; 0: none is awaited */
};

/* One request. Counted: one reference is microhttpd's (until the request is completed), one the
 * handler's (from handle until http_reply). Everything a handler may look at is a copy in this
 * block, because the deadline may have answered and microhttpd forgotten the request while the
 * handler still works on it. */
struct http_exchange {
    struct http_server *server;
    struct http_loop *loop;            /* alive as long as the connection */
    struct MHD_Connection *connection; /* alive while suspended, and on its own thread */
    struct http_peer *peer;            /* the same */
    const struct http_route *route;    /* NULL: no such path or method */
    atomic_int refs;
    bool handed_over; /* the handler owes a http_reply */
    bool cut_short;   /* answered before the body was read */
    void *user;

    pthread_mutex_t lock; /* state, response, status */
    enum exchange_state state;
    struct MHD_Response *response;
    unsigned status;

    char *body; /* NUL-terminated for the convenience of parsers */
    size_t body_len;
    size_t body_room;      /* without the NUL; this much is counted in server->inflight_bytes */
    size_t body_announced; /* by Content-Length; 0: not */
    size_t discarded;      /* bytes read after a refusal in mid-body */
    int64_t received_ms;

    struct http_exchange *prev, *next; /* under server->lock, as the next two */
    bool watched;
    int64_t deadline_mono_ms;

    struct str method;
    struct str path;
    size_t n_parts;
    struct part parts[]; /* the text that they borrow follows */
};

/* One thread with a microhttpd daemon of its own; all share the listening socket. */
struct http_loop {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    bool runs;
    bool starved; /* no descriptor was left for a connection; on its own thread */
    struct wake wake;
    atomic_bool woken; /* wake has been written and not been read yet */
};

/* A socket whose request was refused unread, kept open for a moment: http_server_linger.c. */
struct lingering {
    int fd;
    int64_t until_ms;
};
#define LINGER_MAX 64

struct http_server {
    struct http_loop *loops;
    size_t n_loops;
    const struct http_route *routes;
    struct http_exchange **watched; /* a list a route, oldest first: handled, not answered */
    size_t n_routes;
    void *opaque;
    http_refused_fn *refused; /* NULL: nobody wants to know */
    size_t max_inflight_bytes;
    int64_t request_limit_ms; /* the longest a client may take to bring in one request */
    char *error_key;
    int listen_fd;
    int port;

    atomic_size_t inflight_bytes;
    atomic_int refs; /* the owner's, and one for each exchange */
    atomic_bool closes_after_reply;
    atomic_bool quiesced;
    atomic_size_t n_quiesced; /* loops that know, and accept nothing more */
    atomic_bool loops_must_end;

    pthread_t timer;
    bool timer_runs;
    struct wake wake; /* of the timer thread */

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t idle;  /* in_flight became 0 */
    struct http_peer *peers;
    struct lingering lingers[LINGER_MAX];
    size_t n_lingers;
    size_t in_flight;     /* requests begun and not completed */
    int64_t next_look_ms; /* when the timer thread looks again by itself */
    bool stopping;        /* what is complete from now on is answered 503 */
    bool timer_must_end;
};

/* http_server.c */
void http_server_release(struct http_server *s);

/* http_server_listen.c: a listening socket for "host:port" or "[::1]:port". */
enum err http_server_listen(const char *listen_on, int *fd, int *port, struct why *why) MUST_CHECK;
/* Nobody begins a connection to it any more; who has begun one can end that (RFC 9293 section
 * 3.5) and be accepted. The kernel drops the SYN, so that a client sends it again after a second
 * (RFC 6298 section 2.1) and is refused when the socket has been shut down. Otherwise who connects
 * between the last accept and that would be reset with a request under way. socket(7),
 * SO_ATTACH_FILTER; where a kernel has none, that gap is left. */
void http_server_turn_away(int fd);

/* http_server_exchange.c */
struct http_exchange *exchange_new(struct http_loop *l, struct MHD_Connection *connection,
                                   const char *method, const char *path);
void exchange_hold(struct http_exchange *x);
void exchange_release(struct http_exchange *x);
bool exchange_is_answered(struct http_exchange *x);
/* Settles the answer {"detail": "…"}; false when there is one already: the first wins. */
bool exchange_refuse(struct http_exchange *x, int status, const char *detail,
                     const struct headers *extra);

/* http_server_body.c: the body, in memory and in the account.
 * ERR_REFUSE: over the route's limit. ERR_RETRY: too much in hand in all, or no memory. expect
 * looks at Content-Length before a byte has come. */
enum err exchange_body_expect(struct http_exchange *x) MUST_CHECK;
enum err exchange_body_add(struct http_exchange *x, const char *data, size_t len) MUST_CHECK;
void exchange_body_drop(struct http_exchange *x);

/* http_server_serve.c: a microhttpd daemon that calls back there; it does nothing until it is run.
 */
struct MHD_Daemon *http_server_daemon_new(struct http_loop *l,
                                          const struct http_server_options *options);

/* How many connections there may be at once; 0: the default. */
size_t http_server_max_connections(int wanted);

/* http_server_loop.c */
enum err http_server_loops_start(struct http_server *s, const struct http_server_options *options,
                                 struct why *why) MUST_CHECK;
/* Makes a loop run microhttpd and look at what has changed in the server. Any thread. */
void http_loop_wake(struct http_loop *l);
void http_server_loops_wake(struct http_server *s);
/* Nothing may be suspended any more. */
void http_server_loops_stop(struct http_server *s);

/* http_server_timer.c */
enum err http_server_timer_start(struct http_server *s, struct why *why) MUST_CHECK;
void http_server_timer_stop(struct http_server *s);
/* From now on x is answered for when its time is over or the server ends. False when the server is
 * ending already. */
bool http_server_watch(struct http_exchange *x) MUST_CHECK;
void http_server_unwatch(struct http_exchange *x);
void http_server_peer_add(struct http_server *s, struct http_peer *peer);
/* Frees it. */
void http_server_peer_remove(struct http_server *s, struct http_peer *peer);
/* Answers 503 for everything that is watched, and lets nothing more be. */
void http_server_give_up(struct http_server *s);

/* http_server_linger.c */
/* Keeps a duplicate of the socket open for a moment. */
void http_server_linger(struct http_server *s, int fd);
/* For the timer thread: fills up to LINGER_MAX entries; moves them on after poll. */
struct pollfd;
size_t http_server_linger_poll(struct http_server *s, struct pollfd *to);
void http_server_linger_look(struct http_server *s, int64_t now_ms);
void http_server_linger_end(struct http_server *s);

#endif

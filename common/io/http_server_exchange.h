/* One request and its answer, for http_server.c. What handlers may do with it is in http_server.h.
 *
 *   reading ──▶ handled ──▶ suspended ──▶ answered     answered is reached once, from any of the
 *      └───────────┴───────────────────────▲           others: by the handler, by a refusal, by the
 *                                                      deadline or by the end of the server */
#ifndef CRCR_IO_HTTP_SERVER_EXCHANGE_H
#define CRCR_IO_HTTP_SERVER_EXCHANGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../base/wake.h"
#include "http_server.h"

struct MHD_Connection;
struct MHD_Response;
struct http_head;
struct http_peer;

/* All request bodies in hand together, at most max_bytes (CRCR_MAX_INFLIGHT_BYTES). Only received
 * bytes are counted: a client that announces much and sends nothing takes no room. */
struct http_inflight {
    pthread_mutex_t lock; /* for the fields below, and the bodies in the list */
    size_t max_bytes;     /* 0: no limit */
    size_t bytes;
    struct http_exchange *oldest; /* of the incomplete bodies, in the order of their first bytes */
};

/* One body; its block grows as the bytes come. All 0 but the two limits at first. */
struct http_body {
    size_t max;       /* more is refused */
    size_t announced; /* by Content-Length; 0: not */
    char *ptr; /* malloc'ed, NUL-terminated for the convenience of parsers; NULL: nothing came */
    size_t len;
    size_t room; /* without the NUL; so much is counted, also after http_take_body */
};

/* The requests of one loop that wait for their answer. */
struct http_waiting {
    struct wake wake; /* the loop must run: MHD_resume_connection wakes only microhttpd's threads */
    atomic_bool woken;    /* wake was written, and not read yet */
    atomic_size_t unread; /* how many connections of clients that do not read must end */
    pthread_mutex_t lock; /* for the fields below, and those of http_exchange that say so */
    struct http_exchange *first;
    bool stopping; /* requests that are complete from now on are answered 503 */
};

/* Lives as long as the server and every exchange: a handler may answer after the server was freed.
 */
struct http_shared {
    atomic_int refs;
    char *error_key;
    struct http_inflight inflight;
    size_t n_loops;
    struct http_waiting waiting[]; /* one a loop */
};

/* With one reference. */
struct http_shared *http_shared_new(const char *error_key, size_t max_inflight_bytes,
                                    size_t n_loops);
void http_shared_release(struct http_shared *shared);

/* Counted: one reference is microhttpd's (until the request is completed), one the handler's (from
 * handle until http_reply). */
struct http_exchange {
    struct http_shared *shared;
    struct http_waiting *waiting;      /* its loop's */
    struct MHD_Connection *connection; /* alive while suspended, and on its own thread */
    struct http_peer *peer;            /* the same */
    const struct http_route *route;    /* NULL: no such path or method */
    struct http_head *head;
    struct http_body body; /* under inflight.lock until it is complete, as the next */
    bool incomplete;       /* it is in the list */
    bool displaced; /* its body was dropped for others; its own thread closes the connection */
    struct http_exchange *older, *newer;
    size_t discarded; /* bytes read after a refusal in mid-body */
    int64_t received_ms;
    bool handed_over; /* the handler owes a http_reply */
    atomic_int refs;

    /* Under waiting->lock: */
    bool suspended, answered, listed; /* listed: handed over, not answered */
    struct http_exchange *prev, *next;
    int64_t due_ms;
    unsigned status;
    struct MHD_Response *response; /* NULL: close the connection */
};

struct http_exchange *http_exchange_new(struct http_shared *shared, struct http_waiting *waiting,
                                        struct MHD_Connection *connection, const char *method,
                                        const char *path);
void http_exchange_release(struct http_exchange *x);
/* Appends to the body; at max_bytes the oldest incomplete body, of any thread, is displaced.
 * ERR_REFUSE: over its own limit. ERR_RETRY: no other body to displace, or no memory. The body is
 * unchanged then. ERR_STOP: it was displaced itself. */
enum err http_exchange_add(struct http_exchange *x, const char *data, size_t len) MUST_CHECK;
/* Ends a request whose body is incomplete, with 503. On its own thread. */
void http_exchange_displace(struct http_exchange *x);
/* The body is complete, and cannot be displaced any more. False: it was displaced. */
bool http_exchange_body_ends(struct http_exchange *x) MUST_CHECK;
/* Frees the body and counts it no more. */
void http_exchange_drop_body(struct http_exchange *x);
bool http_exchange_answered(struct http_exchange *x);
/* Answers {"detail": "…"} if it is not answered yet; allow: the methods of a 405, else STR_NONE. */
void http_exchange_refuse(struct http_exchange *x, int status, const char *detail,
                          struct str allow);
/* Calls the route's handle. From then until the reply the deadline (due_ms) may answer. True: the
 * connection is suspended until the reply. False: it is answered already. */
bool http_exchange_handle(struct http_exchange *x, void *opaque) MUST_CHECK;

/* Answers 503 to requests past their deadline; returns the next deadline. stopping: answers all,
 * and those that come later. */
int64_t http_waiting_answer(struct http_shared *shared, struct http_waiting *w, int64_t now_ms,
                            const char *detail, bool stopping);
/* Any thread. */
void http_waiting_wake(struct http_waiting *w);

#endif

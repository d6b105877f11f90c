/* The connections of one loop of http_server.c, and until when each client must have done what is
 * due: send a head, send a body, or read an answer. Who is late is cut off; where room is needed,
 * who has been due longest. Only the loop's thread uses them. */
#ifndef CRCR_IO_HTTP_SERVER_PEER_H
#define CRCR_IO_HTTP_SERVER_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "http_server_head.h"

struct http_exchange;
struct loop;

struct http_peers {
    struct http_peer *first; /* of those that are due: since longest */
    size_t n, crowd;         /* with more than that, each new one ends the first that is due */
    int64_t idle_ms, request_limit_ms; /* between requests; for one, however busy the client */
};

struct http_peer {
    struct http_peer *prev, *next;
    struct http_peers *all;
    struct loop *loop;
    int fd;
    struct http_exchange *x;     /* the request under way, or NULL: its head has not come */
    struct http_escaped escaped; /* in its target */
    int64_t due_ms;              /* monotonic: by then it must have done what is due; 0: our turn */
};

/* Joins all, and has 10 s for its first head. fd is borrowed. */
struct http_peer *http_peer_new(struct http_peers *all, struct loop *loop, int fd);
void http_peer_free(struct http_peer *peer);
/* The client is due from now on, and has so long; limit_ms 0: request_limit_ms. */
void http_peer_due(struct http_peer *peer, int64_t limit_ms);
/* It has 10 s for its head, from now, or from idle_ms on (after an answer, on a connection that is
 * kept); never longer than request_limit_ms. */
void http_peer_head_due(struct http_peer *peer, int64_t idle_ms);
/* Any thread while the connection is known to be open, in mid-body: microhttpd takes no answer
 * there, but writes nothing either. Says status ("408 Request Timeout") and detail, which need no
 * escaping, and ends the connection. */
void http_peer_refuse(const struct http_peer *peer, const char *status, const char *detail);
/* Cuts off the first whose client has an answer to read. */
void http_peers_end_reader(struct http_peers *all);
/* Cuts off who is late; before that, late is called for those with a request. */
void http_peers_cut_off(struct http_peers *all, int64_t now_ms,
                        void (*late)(struct http_exchange *x));

#endif

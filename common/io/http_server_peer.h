/* The connections of one loop of http_server.c, and until when each client must have sent what is
 * due: who is late, or idle where room is needed, is cut off. Only the loop's thread uses them. */
#ifndef CRCR_IO_HTTP_SERVER_PEER_H
#define CRCR_IO_HTTP_SERVER_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "http_server_head.h"

struct http_exchange;
struct loop;

struct http_peers {
    struct http_peer *first; /* the oldest */
    size_t n, crowd;         /* with more than that, each new one ends the oldest without a head */
    int64_t idle_ms, request_limit_ms; /* between requests; for one, however busy the client */
};

struct http_peer {
    struct http_peer *prev, *next;
    struct http_peers *all;
    struct loop *loop;
    int fd;
    struct http_exchange *x;     /* the request under way, or NULL: its head has not come */
    struct http_escaped escaped; /* in its target */
    int64_t due_ms; /* monotonic: by then its head, or its body, must have come; 0: our turn */
};

/* Joins all, and has 10 s for its first head. fd is borrowed. */
struct http_peer *http_peer_new(struct http_peers *all, struct loop *loop, int fd);
void http_peer_free(struct http_peer *peer);
/* The client has so long for what is next; limit_ms 0: request_limit_ms. */
void http_peer_due(struct http_peer *peer, int64_t limit_ms);
/* It has 10 s for its head, from now, or from idle_ms on (after an answer, on a connection that is
 * kept); never longer than request_limit_ms. */
void http_peer_head_due(struct http_peer *peer, int64_t idle_ms);
/* Cuts off who is late; before that, late is called for those with a request. */
void http_peers_cut_off(struct http_peers *all, int64_t now_ms,
                        void (*late)(struct http_exchange *x));

#endif

/* The connections of one loop of http_server.c, and the deadline of each client: to send a head, to
 * send a body, or to read an answer. A client past its deadline is cut off. If room is needed, the
 * one whose deadline has run longest is. Only the loop's thread uses them. */
#ifndef CRCR_IO_HTTP_SERVER_PEER_H
#define CRCR_IO_HTTP_SERVER_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "http_server_head.h"

struct http_exchange;
struct loop;

struct http_peers {
    struct http_peer *first; /* of the clients with a deadline, the one that has had it longest */
    size_t n, crowd;         /* with more than that, each new one ends the first */
    int64_t idle_ms, request_limit_ms; /* between requests; for one, however busy the client */
};

struct http_peer {
    struct http_peer *prev, *next;
    struct http_peers *all;
    struct loop *loop;
    int fd;
    struct http_exchange *x;     /* its open request, or NULL: no head has come */
    struct http_escaped escaped; /* in its target */
    int64_t due_ms;              /* monotonic: the client's deadline; 0: it waits for us */
};

/* Adds a connection to all, with 10 s for its first head. fd is borrowed. */
struct http_peer *http_peer_new(struct http_peers *all, struct loop *loop, int fd);
void http_peer_free(struct http_peer *peer);
/* The client is due from now on, for limit_ms; 0: request_limit_ms. */
void http_peer_due(struct http_peer *peer, int64_t limit_ms);
/* It has 10 s for its head, from now, or from idle_ms on (after an answer, on a connection that is
 * kept); never longer than request_limit_ms. */
void http_peer_head_due(struct http_peer *peer, int64_t idle_ms);
/* Writes an answer in mid-body, where microhttpd takes none (and writes nothing itself), and ends
 * the connection. status ("408 Request Timeout") and detail must need no escaping. Any thread,
 * while the connection is known to be open. */
void http_peer_refuse(const struct http_peer *peer, const char *status, const char *detail);
/* Cuts off the client that has been reading its answer for longest. */
void http_peers_end_reader(struct http_peers *all);
/* Cuts off late clients; calls late before, for those with a request. */
void http_peers_cut_off(struct http_peers *all, int64_t now_ms,
                        void (*late)(struct http_exchange *x));

#endif

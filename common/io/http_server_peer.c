#include "http_server_peer.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "http_server_exchange.h"

enum { HEAD_MS = 10000 };

/* The socket is only shut down: closing it is microhttpd's, which sees the end of the stream. */
static void cut_off(struct http_peer *peer)
{
    peer->due_ms = 0;
    shutdown(peer->fd, SHUT_RDWR);
}

void http_peer_refuse(const struct http_peer *peer, const char *status, const char *detail)
{
    char answer[256];
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 %s\r\n"
                       "Connection: close\r\n"
                       "Retry-After: 2\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n"
                       "{\"detail\": \"%s\"}\n",
                       status, strlen("{\"detail\": \"\"}\n") + strlen(detail), detail);
    (void)!send(peer->fd, answer, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(peer->fd, SHUT_RDWR);
}

/* Cuts off the first that is due: the newest has its time, and who is quick is never the first. */
static void make_room(struct http_peers *all, const struct http_peer *newest)
{
    struct http_peer *peer;
    DL_FOREACH(all->first, peer)
    {
        if (!peer->due_ms || peer == newest)
            continue;
        if (peer->x && !http_exchange_answered(peer->x))
            http_exchange_displace(peer->x);
        cut_off(peer);
        return;
    }
}

void http_peers_end_reader(struct http_peers *all)
{
    struct http_peer *peer;
    DL_FOREACH(all->first, peer)
    {
        if (peer->due_ms && peer->x && http_exchange_answered(peer->x)) {
            cut_off(peer);
            return;
        }
    }
}

struct http_peer *http_peer_new(struct http_peers *all, struct loop *loop, int fd)
{
    struct http_peer *peer = mem_alloc(1, sizeof(*peer));
    *peer = (struct http_peer){ .all = all, .loop = loop, .fd = fd };
    DL_APPEND(all->first, peer);
    http_peer_head_due(peer, 0);
    if (++all->n > all->crowd)
        make_room(all, peer);
    return peer;
}

void http_peer_free(struct http_peer *peer)
{
    DL_DELETE(peer->all->first, peer);
    peer->all->n--;
    free(peer);
}

void http_peer_due(struct http_peer *peer, int64_t limit_ms)
{
    DL_DELETE(peer->all->first, peer);
    DL_APPEND(peer->all->first, peer);
    peer->due_ms = clock_mono_ms() + (limit_ms ? limit_ms : peer->all->request_limit_ms);
}

void http_peer_head_due(struct http_peer *peer, int64_t idle_ms)
{
    int64_t limit_ms = idle_ms + HEAD_MS;
    http_peer_due(peer, limit_ms < peer->all->request_limit_ms ? limit_ms : 0);
}

void http_peers_cut_off(struct http_peers *all, int64_t now_ms,
                        void (*late)(struct http_exchange *x))
{
    struct http_peer *peer;
    DL_FOREACH(all->first, peer)
    {
        if (!peer->due_ms || now_ms <= peer->due_ms)
            continue;
        if (peer->x)
            late(peer->x);
        cut_off(peer);
    }
}

struct str http_address(const struct http_exchange *x, char to[HTTP_ADDRESS_SIZE])
{
    const struct sockaddr *from =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    struct in6_addr six;
    to[0] = '\0';
    if (from->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)from)->sin_addr, to, HTTP_ADDRESS_SIZE);
    } else if (from->sa_family == AF_INET6) {
        six = ((const struct sockaddr_in6 *)from)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(&six))
            memset(six.s6_addr + 8, 0, 8);
        inet_ntop(AF_INET6, &six, to, HTTP_ADDRESS_SIZE);
    }
    return str_of(to);
}

#include "http_server_peer.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"

enum { HEAD_MS = 10000 };

/* The socket is only shut down: closing it is microhttpd's, which sees the end of the stream. */
static void cut_off(struct http_peer *peer)
{
    peer->due_ms = 0;
    shutdown(peer->fd, SHUT_RDWR);
}

/* Who has anything to say has said it by then. */
static void cut_off_oldest_idle(struct http_peers *all)
{
    struct http_peer *peer;
    DL_FOREACH(all->first, peer)
    {
        if (!peer->x && peer->due_ms) {
            cut_off(peer);
            return;
        }
    }
}

struct http_peer *http_peer_new(struct http_peers *all, struct loop *loop, int fd)
{
    struct http_peer *peer = mem_alloc(1, sizeof(*peer));
    *peer = (struct http_peer){ .all = all, .loop = loop, .fd = fd };
    http_peer_head_due(peer, 0);
    DL_APPEND(all->first, peer);
    if (++all->n > all->crowd)
        cut_off_oldest_idle(all);
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

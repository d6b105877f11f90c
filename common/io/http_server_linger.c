/* A request that is refused before its body was read leaves bytes in the socket. Closing it then
 * makes the kernel send a reset, which can destroy the answer before the client has read it (RFC
 * 9112 section 9.6). So a duplicate of the socket stays open while the client reads and hangs up,
 * for a bounded time, and what it still sends is thrown away. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/clock.h"
#include "http_server_inner.h"

enum { LINGER_MS = 2000, DISCARD_AT_ONCE_BYTES = 1 << 20 };

void http_server_linger(struct http_server *s, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return; /* then the client may miss the answer, no more */
    shutdown(copy, SHUT_WR);
    pthread_mutex_lock(&s->lock);
    bool taken = s->n_lingers < LINGER_MAX && !s->timer_must_end;
    if (taken)
        s->lingers[s->n_lingers++] = (struct lingering){ copy, clock_mono_ms() + LINGER_MS };
    pthread_mutex_unlock(&s->lock);
    if (taken)
        wake_up(&s->wake);
    else
        close(copy);
}

size_t http_server_linger_poll(struct http_server *s, struct pollfd *to)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->n_lingers;
    for (size_t i = 0; i < n; i++)
        to[i] = (struct pollfd){ .fd = s->lingers[i].fd, .events = POLLIN };
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* False when the client has hung up. MSG_TRUNC: the kernel drops the bytes without copying them. */
static bool discard(int fd)
{
    ssize_t n = recv(fd, NULL, DISCARD_AT_ONCE_BYTES, MSG_DONTWAIT | MSG_TRUNC);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void http_server_linger_look(struct http_server *s, int64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_lingers;) {
        struct lingering *l = &s->lingers[i];
        if (discard(l->fd) && now_ms < l->until_ms) {
            i++;
            continue;
        }
        close(l->fd);
        *l = s->lingers[--s->n_lingers];
    }
    pthread_mutex_unlock(&s->lock);
}

void http_server_linger_end(struct http_server *s)
{
    while (s->n_lingers)
        close(s->lingers[--s->n_lingers].fd);
}

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "http_server_inner.h"

enum {
    LAST_WORDS_MS = 500,     /* for sending what was answered at the end */
    LET_IN_MS = 200,         /* for accepting who has connected */
    HANDSHAKE_MS = 50,       /* from the kernel's SYN to the client's ACK */
    FIRST_REQUEST_MS = 1000, /* from a connection to its first request */
};

/* Called by the owner and by the last holder of each exchange: an exchange may outlive the server,
 * and its late http_reply must find the account it settles. */
void http_server_release(struct http_server *s)
{
    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s->watched);
    free(s->loops);
    free(s->error_key);
    free(s);
}

static struct http_server *server_alloc(const struct http_server_options *o)
{
    struct http_server *s = mem_alloc(1, sizeof(*s));
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->refs, 1);
    s->routes = o->routes;
    s->n_routes = o->n_routes;
    s->watched = mem_alloc(o->n_routes, sizeof(struct http_exchange *));
    s->n_loops = o->threads > 0 ? (size_t)o->threads : 1;
    s->loops = mem_alloc(s->n_loops, sizeof(*s->loops));
    for (size_t i = 0; i < s->n_loops; i++)
        s->loops[i].wake.fd = -1;
    s->opaque = o->opaque;
    s->refused = o->refused;
    s->max_inflight_bytes = o->max_inflight_bytes;
    s->error_key = mem_dup(o->json_error_key ? o->json_error_key : "detail");
    s->listen_fd = -1;
    s->wake.fd = -1;
    return s;
}

enum err http_server_new(struct http_server **ret, const struct http_server_options *options,
                         struct why *why)
{
    struct http_server *s = server_alloc(options);
    enum err err = http_server_listen(options->listen, &s->listen_fd, &s->port, why);
    if (!err)
        err = wake_init(&s->wake, why);
    if (!err)
        err = http_server_timer_start(s, why);
    if (!err)
        err = http_server_loops_start(s, options, why);
    if (err) {
        http_server_free(s, 0);
        return err;
    }
    *ret = s;
    return OK;
}

void http_server_last_requests(struct http_server *s)
{
    atomic_store(&s->closes_after_reply, true);
}

/* The kernel resets who still waits to be accepted when the socket is shut down. */
static void let_in(struct http_server *s)
{
    struct pollfd queue = { .fd = s->listen_fd, .events = POLLIN };
    http_server_turn_away(s->listen_fd);
    int64_t began_ms = clock_mono_ms(), came_ms = began_ms, now_ms = began_ms;
    while (now_ms - began_ms < LET_IN_MS && now_ms - came_ms < HANDSHAKE_MS) {
        poll(NULL, 0, 1);
        now_ms = clock_mono_ms();
        if (poll(&queue, 1, 0) > 0)
            came_ms = now_ms;
    }
}

/* The loops may still use the socket, so it is shut down here, which makes the kernel refuse new
 * clients at once, and closed in http_server_free. */
void http_server_quiesce(struct http_server *s)
{
    http_server_last_requests(s);
    if (atomic_load(&s->quiesced) || s->listen_fd < 0)
        return;
    let_in(s);
    shutdown(s->listen_fd, SHUT_RDWR);
    atomic_store(&s->quiesced, true);
    http_server_loops_wake(s);
}

static void drain(struct http_server *s, int drain_ms)
{
    int64_t until_ms = clock_mono_ms() + drain_ms;
    struct timespec until = { until_ms / 1000, until_ms % 1000 * 1000000 };
    pthread_mutex_lock(&s->lock);
    while (s->in_flight && pthread_cond_timedwait(&s->idle, &s->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&s->lock);
}

/* microhttpd aborts when it is stopped with a connection suspended: everything that waits is
 * answered first, and from then on nothing is suspended any more. */
void http_server_free(struct http_server *s, int drain_ms)
{
    if (!s)
        return;
    http_server_quiesce(s);
    drain(s, drain_ms);
    http_server_give_up(s);
    drain(s, LAST_WORDS_MS);
    http_server_loops_stop(s);
    http_server_timer_stop(s);
    http_server_linger_end(s);
    wake_clear(&s->wake);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    http_server_release(s);
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

size_t http_server_in_flight(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->in_flight;
    pthread_mutex_unlock(&s->lock);
    return n;
}

bool http_server_awaits(struct http_server *s)
{
    int64_t since_ms = clock_mono_ms() - FIRST_REQUEST_MS;
    struct http_peer *peer;
    if (atomic_load(&s->n_quiesced) < s->n_loops) /* they may be accepting somebody */
        return true;
    pthread_mutex_lock(&s->lock);
    bool awaits = s->in_flight > 0;
    DL_FOREACH(s->peers, peer)
    {
        awaits |= !peer->asked && peer->opened_ms > since_ms;
    }
    pthread_mutex_unlock(&s->lock);
    return awaits;
}
